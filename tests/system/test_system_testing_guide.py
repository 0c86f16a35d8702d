"""Every example of the guide to testing works as it stands there, each in a project of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "testing.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
CONFTESTS = [block for block in BLOCKS if block.startswith("# conftest.py")]
EXAMPLES = [block for block in BLOCKS if not block.startswith("# conftest.py")]
OPTIONAL = ("faststream",)


def name_of(example: str) -> str:
    found = re.search(r"def (test_\w+)", example)
    assert found is not None, "an example without a test"
    return found.group(1)


def run(example: str, folder: Path, *, conftest: str | None = None) -> None:
    (folder / "test_example.py").write_text(example)
    if conftest is not None:
        (folder / "conftest.py").write_text(conftest)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_an_example_works_as_it_stands(example: str, tmp_path: Path) -> None:
    for library in OPTIONAL:
        if re.search(rf"^from {library}\b", example, re.MULTILINE) and importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    run(example, tmp_path)


def test_the_conftest_gives_its_settings(tmp_path: Path) -> None:
    (conftest,) = CONFTESTS
    check = "def test_it(headpond_broker):\n    assert headpond_broker.settings['num.partitions'] == 3\n"
    run(check, tmp_path, conftest=conftest)


def test_every_client_that_the_guide_promises_has_an_example() -> None:
    libraries = set(re.findall(r"^from (\w+)", "\n".join(EXAMPLES), re.MULTILINE))
    assert {"confluent_kafka", "aiokafka", "faststream", "headpond"} <= libraries
