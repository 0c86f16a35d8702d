"""The product has one name: no file tells of a former one."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORMER = ("pen" + "stock").encode()


def test_no_file_and_no_path_has_the_former_name() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True
    )
    paths = [ROOT / name.decode() for name in listed.stdout.split(b"\0") if name]
    if listed.returncode:  # an unpacked source distribution
        paths = [path for folder in ("src", "tests", "docs", "examples") for path in (ROOT / folder).rglob("*.*")]
    assert len(paths) > 1_000
    named = [path for path in paths if FORMER in str(path.relative_to(ROOT)).lower().encode()]
    told = [path for path in paths if path.is_file() and FORMER in path.read_bytes().lower()]
    assert (named, told) == ([], [])
