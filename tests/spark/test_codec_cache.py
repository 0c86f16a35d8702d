"""What was compiled is remembered where that is possible; where it is not, everything works all the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headpond.model import InvariantBroken
from spark.codec_support import codec, jit, unpack

pytestmark = pytest.mark.long  # compiles everything, several times

read_varint = unpack.read_varint
SOURCE = Path(codec.__file__).parents[2]
PROGRAM = """
from headpond.model import TopicPartition
from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.record import Record
from headpond.spark.codec import decode
data = bytes(build_batch([Record(0, 1, b"k", b"v")]))
for batch in decode(data, tp=TopicPartition("t", 0), from_offset=0, columns=("value",)):
    print(batch.to_pylist())
"""


def run(installed: Path, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM],
        env={**clean, "PYTHONPATH": str(installed), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def install(folder: Path) -> Path:
    """A copy of the package whose folder of compiled code is a file: nobody, not even root, can write there."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, folder / "headpond", ignore=ignored)
    (folder / "headpond" / "spark" / "codec" / "__pycache__").write_text("in the way")
    return folder


def needs_a_helper_of_another_file(data: bytes) -> object:
    return read_varint(data, 0, 1)


def test_a_helper_from_another_file_is_refused_since_the_cache_would_keep_it_for_ever() -> None:
    for make in (jit.inlined, jit.compiled(jit.BYTES)):
        with pytest.raises(InvariantBroken, match="read_varint"):
            make(needs_a_helper_of_another_file)


def test_it_works_where_nothing_can_be_remembered(tmp_path: Path) -> None:
    in_the_way = tmp_path / "home"
    in_the_way.write_text("a file, not a folder")
    environment = {"HOME": str(in_the_way), "XDG_CACHE_HOME": str(in_the_way)}
    assert run(install(tmp_path / "lib"), **environment) == "[{'value': b'v'}]"


def test_a_read_only_installation_uses_the_folder_that_the_user_names(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    installed = install(tmp_path / "lib")
    assert run(installed, NUMBA_CACHE_DIR=str(cache)) == "[{'value': b'v'}]"
    assert list(cache.rglob("*.nbc"))
    # Damaged by whatever: compiled anew, not believed.
    for file in cache.rglob("*.nb*"):
        file.write_bytes(b"damaged")
    assert run(installed, NUMBA_CACHE_DIR=str(cache)) == "[{'value': b'v'}]"
