"""Bytes lent to a socket are the file's, whatever happens to the file meanwhile, and only if they are in memory."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from headpond.runtime import disk_file, lending
from headpond.runtime.disk_file import DiskFile
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.lending import LENT_BYTES_MAX, STEP_BYTES, WINDOWS_MAX, NotLending, Windows

CONTENT = bytes(range(256)) * 4_096  # 1 MiB


def can_lend() -> bool:
    try:
        with open(__file__, "rb") as file:
            Windows().lend(file, file.fileno(), 0, 10, os.fstat(file.fileno()).st_size)
    except NotLending:
        return False
    return True


pytestmark = pytest.mark.skipif(not can_lend(), reason="this system can't tell what is in memory")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[DiskFile]:
    opened = DiskFileSystem().open(str(tmp_path / "file"), create=True)
    opened.write(CONTENT)
    yield opened
    opened.close()


def lent(file: DiskFile, position: int, size: int) -> memoryview:
    found = file.lend_nowait(position, size)
    assert found is not None
    assert len(found) == size
    return found.view


def test_what_is_lent_is_what_would_be_read(file: DiskFile) -> None:
    for position, size in ((0, len(CONTENT)), (1, 70_000), (4_095, 2), (len(CONTENT) - 1, 1)):
        assert bytes(lent(file, position, size)) == CONTENT[position : position + size]


def test_a_file_that_has_grown_is_lent_to_its_new_end(file: DiskFile) -> None:
    lent(file, 0, len(CONTENT))
    file.write(b"more" * 3_000)
    assert bytes(lent(file, len(CONTENT) - 2, 12_002)) == CONTENT[-2:] + b"more" * 3_000


def test_nothing_is_lent_beyond_the_end_of_the_file(file: DiskFile) -> None:
    assert file.lend_nowait(0, len(CONTENT) + 1) is None
    assert file.lend_nowait(len(CONTENT), 1) is None


def test_a_view_outlives_its_file(file: DiskFile, tmp_path: Path) -> None:
    view = lent(file, 100, 200_000)
    file.close()
    (tmp_path / "file").unlink()
    assert bytes(view) == CONTENT[100:200_100]


def test_a_closed_file_lends_nothing(file: DiskFile) -> None:
    file.close()
    assert file.lend_nowait(0, 100) is None


def test_a_view_may_reach_over_the_border_of_two_windows(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with open(path, "wb") as made:
        made.seek(STEP_BYTES - 500)
        made.write(b"x" * 1_000)
    file = DiskFileSystem().open(str(path), writable=False)
    assert bytes(lent(file, STEP_BYTES - 500, 1_000)) == b"x" * 1_000
    assert bytes(lent(file, STEP_BYTES + 1, 499)) == b"x" * 499
    file.close()


def test_more_than_a_window_shows_is_not_lent(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(LENT_BYTES_MAX + 1))
    file = DiskFileSystem().open(str(path), writable=False)
    assert file.lend_nowait(0, LENT_BYTES_MAX + 1) is None
    assert file.lend_nowait(0, LENT_BYTES_MAX) is not None
    file.close()


def test_the_windows_of_all_files_are_limited_and_those_of_a_closed_file_are_gone(tmp_path: Path) -> None:
    windows = Windows()
    opened = []
    for number in range(WINDOWS_MAX + 3):
        path = tmp_path / str(number)
        path.write_bytes(CONTENT)
        opened.append(open(path, "rb"))  # noqa: SIM115
    for file in opened:
        assert windows.lend(file, file.fileno(), 0, 100, len(CONTENT)) is not None
    assert len(windows._windows) == WINDOWS_MAX
    for file in opened:
        windows.forget(file)
        file.close()
    assert not windows._windows


def test_clients_that_hold_what_they_were_lent_do_not_use_up_the_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lending, "ALIVE_MAX", 5)
    windows, opened = Windows(), []
    for number in range(6):
        path = tmp_path / str(number)
        path.write_bytes(CONTENT)
        opened.append(open(path, "rb"))  # noqa: SIM115
    held = [windows.lend(file, file.fileno(), 0, 100, len(CONTENT)) for file in opened]
    assert [one is not None for one in held] == [True] * 5 + [False]
    first, last = opened[0], opened[5]
    assert windows.lend(first, first.fileno(), 50, 100, len(CONTENT)) is not None, "it has a window"
    windows.forget(first)
    assert windows.lend(last, last.fileno(), 0, 100, len(CONTENT)) is None, "its view is still held"
    held[0] = None
    assert windows.lend(last, last.fileno(), 0, 100, len(CONTENT)) is not None
    for file in opened:
        windows.forget(file)
        file.close()


def test_a_window_that_nobody_uses_is_closed_and_its_views_stay(tmp_path: Path) -> None:
    windows = Windows()
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    with open(path, "rb") as file:
        found = windows.lend(file, file.fileno(), 0, 100, len(CONTENT))
        assert found is not None
        windows.close_unused()
        assert len(windows._windows) == 1, "it was used since the last look"
        windows.close_unused()
        assert not windows._windows
        assert bytes(found.view) == CONTENT[:100]
        assert windows.lend(file, file.fileno(), 0, 100, len(CONTENT)) is not None


def test_what_is_not_in_memory_is_not_lent(file: DiskFile, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Windows()
    monkeypatch.setattr(disk_file, "_windows", windows)
    monkeypatch.setattr(windows, "_pages_in_memory", lambda descriptor, position, size: size // 4_096 - 1)
    assert file.lend_nowait(0, len(CONTENT)) is None


def test_a_system_that_can_not_tell_is_asked_once_and_then_read_from(
    file: DiskFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse() -> None:
        asked.append(True)
        raise NotLending("not here")

    monkeypatch.setattr(disk_file, "_windows", None)
    monkeypatch.setattr(disk_file, "_can_lend", True)
    monkeypatch.setattr(lending, "_cachestat", refuse)
    assert file.lend_nowait(0, 100) is None
    assert file.lend_nowait(0, 100) is None
    assert asked == [True]
    assert file.read_nowait(0, 100) == CONTENT[:100]


def test_a_view_of_bytes_that_were_cut_off_ends_the_connection_and_not_the_process(file: DiskFile) -> None:
    view = lent(file, 0, len(CONTENT))
    os.ftruncate(file._descriptor, 0)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(OSError, match="Bad address"):
        ours.send(view)


def test_lending_is_no_blocking_call(file: DiskFile) -> None:
    async def run() -> None:
        assert file.lend_nowait(0, 100) is not None

    lent(file, 0, 1)  # whether this machine can lend is settled
    asyncio.run(run())


def test_what_lies_before_a_cut_that_is_under_way_is_lent_or_read_but_no_error(file: DiskFile, tmp_path: Path) -> None:
    """A log is cut through a descriptor of its own: the file that readers have knows of it a moment later."""
    other = DiskFileSystem().open(str(tmp_path / "file"))
    other.truncate(500_000)
    other.close()
    assert file.lend_nowait(0, 100_000) is None
    assert file.read_nowait(0, 100_000) == CONTENT[:100_000]
    assert disk_file._can_lend


@pytest.mark.parametrize("copies", [True, False])
def test_nothing_is_lent_to_transports_that_would_look_into_it(
    file: DiskFile, monkeypatch: pytest.MonkeyPatch, copies: bool
) -> None:
    """asyncio's join what they are given before Python 3.12; uvloop's, and the newer ones, hand it to the kernel."""
    monkeypatch.setattr(disk_file, "_windows", None)
    monkeypatch.setattr(disk_file, "_can_lend", True)
    monkeypatch.setattr(lending, "_ASYNCIO_COPIES", copies)

    async def run() -> None:
        assert (file.lend_nowait(0, 100_000) is None) is copies

    asyncio.run(run())
