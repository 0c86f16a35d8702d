"""The bench compares with an earlier commit: how it is built, started and shown. Nothing is measured here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import before, report, servers
from bench.measure import CPU_PER_REQUEST, Outcome, Samples, Scenario
from bench.tools import Tools

PYPROJECT = """
[build-system]
requires = []
build-backend = "none"
[project]
name = "{name}"
version = "1"
scripts = {{ {name} = "{name}:main" }}
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits, between which the package got another name; what would install them notes it instead."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    for name in ("oldname", "newname"):
        (folder / "pyproject.toml").write_text(PYPROJECT.format(name=name))
        (folder / "constraints.txt").write_text("")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", name)
    real_run = before._run

    def run(*command: str) -> str:
        if command[0] == "git":
            return real_run(*command)
        with (tmp_path / "installed").open("a") as note:
            note.write(" ".join(command[-4:]) + "\n")
        return ""

    monkeypatch.setattr(before, "HERE", folder)
    monkeypatch.setattr(before, "FOLDER", tmp_path / "build" / "before")
    monkeypatch.setattr(before, "_run", run)
    return folder


def installations(folder: Path) -> int:
    return (folder.parent / "installed").read_text().count("--editable")


def test_a_commit_is_checked_out_and_installed_once(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD~1")
    for _ in range(2):
        before.build("HEAD~1")
    assert git(before.FOLDER / "tree", "rev-parse", "HEAD") == first
    assert installations(repository) == 1


def test_another_commit_or_a_lost_folder_is_built_anew(repository: Path) -> None:
    before.build("HEAD~1")
    before.build("HEAD")
    assert git(before.FOLDER / "tree", "rev-parse", "HEAD") == git(repository, "rev-parse", "HEAD")
    subprocess.run(["rm", "-r", str(before.FOLDER)], check=True)
    before.build("HEAD")
    assert installations(repository) == 3


def test_a_commit_that_is_not_there_is_said_in_words(repository: Path, tmp_path: Path) -> None:
    server = servers.Before(tmp_path / "data", Tools.__new__(Tools))
    server.commit = "nosuchcommit"
    with pytest.raises(servers.CannotStart, match="nosuchcommit"):
        server.prepare()


def test_it_is_started_by_the_name_that_it_had(repository: Path, tmp_path: Path) -> None:
    server = servers.Before(tmp_path / "data", Tools.__new__(Tools))
    server.commit = "HEAD~1"
    server.settings = ("headpond.flush=os", "num.partitions=3")
    server.prepare()
    program, *arguments = server.command()
    assert program == str(before.FOLDER / "venv" / "bin" / "oldname")
    assert arguments[:2] == ["serve", "--listen"]
    assert "oldname.flush=os" in arguments and "num.partitions=3" in arguments


def test_it_runs_only_if_it_is_asked_for() -> None:
    assert "before" in servers.KINDS and "before" not in servers.ORDINARY


# --- what is shown ----------------------------------------------------------------------------------------------------


def outcome(name: str, samples: Samples) -> dict[str, Any]:
    return Outcome(Scenario(name, "a load", "how", (CPU_PER_REQUEST,), (), lambda _: {}), samples).as_json()


def cpu(*values: float) -> list[dict[str, float]]:
    return [{"cpu_us_per_request": value} for value in values]


def test_each_row_is_compared_with_the_same_row_of_before() -> None:
    samples = {
        "headpond": cpu(8, 9, 10, 11, 12),
        "before": cpu(10, 20, 20, 30, 40),
        "idempotent": cpu(5),
        "before, idempotent": cpu(10),
        "kafka": cpu(100),
    }
    shown = outcome("requests", samples)
    assert shown["ratios"] == {
        "headpond": {"cpu_us_per_request": {"best": 0.8, "median": 0.5}},
        "idempotent": {"cpu_us_per_request": {"best": 0.5, "median": 0.5}},
    }
    assert "to before: 0.80x (0.50x) CPU-us/req" in report.scenario_text(shown)


def test_an_unknown_server_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--servers", "headpond,afore", "--data-root", str(tmp_path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "unknown server afore" in done.stderr


def test_a_revision_is_found_in_the_history_and_a_commit_from_elsewhere_is_not(repository: Path) -> None:
    old, new = git(repository, "rev-parse", "--short", "HEAD~1"), before.revision()
    assert before.is_in_history(new) and before.is_in_history(old) and before.is_in_history(f"{old} with changes")
    assert not before.is_in_history("1234567") and not before.is_in_history("unknown")
    git(repository, "checkout", "-q", "--detach", "HEAD~1")
    assert not before.is_in_history(new)
