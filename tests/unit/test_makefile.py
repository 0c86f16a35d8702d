"""What `make run` tells those who open another terminal, and that a run of tests can't pass with nothing tested."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def recipe(target: str) -> str:
    """The commands, without running them."""
    return subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_line_for_another_terminal_finds_the_command_from_anywhere(tmp_path: Path) -> None:
    said = "\n".join(line for line in recipe("run").splitlines() if line.startswith("echo 'The") or "export" in line)
    told = subprocess.run(["sh", "-c", said], cwd=ROOT, capture_output=True, text=True, check=True).stderr
    folder = ROOT / ".venv" / "bin"
    assert f"{folder}/headpond" in told
    (line,) = [line.strip() for line in told.splitlines() if "export" in line]
    path = subprocess.run(["sh", "-c", f'{line}; echo "$PATH"'], cwd=tmp_path, capture_output=True, text=True)
    assert path.stdout.split(":")[0] == str(folder)


def test_the_container_s_tests_must_all_pass() -> None:
    (wanted,) = re.findall(r"--at-least tests/system=(\d+)", recipe("container-test"))
    tests = (ROOT / "tests" / "system" / "test_system_container.py").read_text()
    assert int(wanted) == len(re.findall(r"^def test_", tests, re.MULTILINE))
