"""What ``pip install headpond`` brings: the wheel, built as a release builds it, and looked into."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.broker import headpond_environment

pytest.importorskip("hatchling", reason="a wheel is built with hatchling, which is not installed here")

ROOT = Path(__file__).parents[2]
PACKAGES = ("headpond", "pyspark_headpond")
BUILD_S_MAX = 120


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    line = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("headpond-*.whl")
    return found


def test_everything_below_src_is_in_it_and_nothing_else(wheel: Path) -> None:
    source = ROOT / "src"
    expected = {
        str(file.relative_to(source))
        for package in PACKAGES
        for file in (source / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    # Spark finds the source and the sink by the first name; the second keeps it quiet.
    assert {"pyspark_headpond/__init__.py", "headpond/spark/log4j2.properties"} <= expected
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == expected


def test_it_runs_from_where_it_is_unpacked(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    (scripts,) = tmp_path.glob("*.dist-info/entry_points.txt")
    assert "headpond = headpond.cli.start:main" in scripts.read_text()
    code = (
        "import importlib.util, sys, headpond; from headpond.cli.start import main\n"
        "print(headpond.__file__, importlib.util.find_spec('pyspark_headpond').origin)\n"
        "sys.argv[1:] = ['--version']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=headpond_environment() | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=BUILD_S_MAX,
        check=False,
    )
    said = done.stdout.split()
    assert said[:2] == [f"{tmp_path}/headpond/__init__.py", f"{tmp_path}/pyspark_headpond/__init__.py"], done.stderr
    assert said[2:3] == ["headpond"]
