"""The workflow that publishes a release. It can't run here: what it says is looked at."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headpond import __version__

ROOT = Path(__file__).parents[2]
FILE = ROOT / ".github" / "workflows" / "publish.yml"

TEXT = FILE.read_text()


@pytest.fixture
def workflow() -> dict[Any, Any]:
    yaml = pytest.importorskip("yaml", reason="the workflow is read with PyYAML, which is not installed here")
    found: dict[Any, Any] = yaml.safe_load(TEXT)
    return found


def test_every_action_is_pinned_and_no_secret_is_used() -> None:
    actions = re.findall(r"uses: (\S+)", TEXT)
    assert len(actions) == 5
    assert all(re.search(r"@(v\d+|release/v\d+|[0-9a-f]{40})$", action) for action in actions)
    assert "secrets." not in TEXT and "password:" not in TEXT


def test_it_runs_for_tags_of_versions_only(workflow: dict[Any, Any]) -> None:
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML's "on"
    assert workflow["permissions"] == {}


def test_only_the_job_that_uploads_may_ask_for_an_identity_and_it_builds_nothing(workflow: dict[Any, Any]) -> None:
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert build["permissions"] == {"contents": "read"}
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"]["name"] == "pypi" and publish["needs"] == "build"
    assert [step.get("run") for step in publish["steps"]] == [None, None]
    assert "with" not in publish["steps"][-1], "attestations are the action's default"


@pytest.mark.parametrize(
    ("tag", "changelog", "is_right"),
    [
        (f"v{__version__}", f"## {__version__} (2026-11-30)\n", True),
        (f"v{__version__}", f"## {__version__} (unreleased)\n", False),
        (f"v{__version__}", "## Unreleased\n", False),
        (f"{__version__}", f"## {__version__} (2026-11-30)\n", False),
        ("v9.9.9", f"## {__version__} (2026-11-30)\n", False),
    ],
)
def test_a_tag_that_is_not_the_version_with_a_dated_entry_stops_it(
    tmp_path: Path, tag: str, changelog: str, is_right: bool
) -> None:
    (found,) = re.findall(r"- name: The tag is the version\n        run: \|\n((?:          .*\n)+)", TEXT)
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}")
    script = "set -e\n" + found.replace("python -c", "python3 -c")
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "GITHUB_REF_NAME": tag}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert (done.returncode == 0) is is_right, done.stderr
