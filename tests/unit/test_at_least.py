"""`make test` fails when tests of Spark were left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.variants import rare

CONFTEST = """
from support.at_least import AtLeast

def pytest_configure(config):
    config.pluginmanager.register(AtLeast("some", {wanted}))
"""
TESTS = """
import pytest

def test_one(): pass
def test_two(): pass
def test_three(): pytest.skip("not here")
"""
ELSEWHERE = "def test_elsewhere(): pass"


@pytest.mark.parametrize(
    ("workers", "wanted", "exit_code"), [((), 2, 0), rare((), 3, 1), rare(("-n", "2"), 2, 0), (("-n", "2"), 3, 1)]
)
def test_a_run_fails_when_fewer_tests_passed_than_wanted(
    tmp_path: Path, workers: tuple[str, ...], wanted: int, exit_code: int
) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "conftest.py").write_text(CONFTEST.format(wanted=wanted))
    (tmp_path / "some" / "test_some.py").write_text(TESTS)
    (tmp_path / "test_elsewhere.py").write_text(ELSEWHERE)
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", str(tmp_path), *workers]
    ran = subprocess.run(
        [*command, "-o", f"pythonpath={tests}", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert ran.returncode == exit_code, ran.stdout + ran.stderr
    assert f"2 tests of some/ passed, at least {wanted} wanted" in ran.stdout
