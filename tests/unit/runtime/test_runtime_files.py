"""The real file system's own business: short writes, cold pages, other processes' locks, failing calls."""

from __future__ import annotations

import errno
import fcntl
import os
import pathlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from headpond.runtime import disk_file, posix
from headpond.runtime.files import DiskFileSystem

fs = DiskFileSystem()


@pytest.fixture(params=["named pipe", "device", "socket"])
def special(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[str]:
    """A path with something there that is no file. The pipe has a writer: to wait for one would be to wait for ever."""
    path = f"{tmp_path}/x"
    if request.param == "device":
        os.symlink("/dev/zero", path)
        yield path
        return
    if request.param == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            yield path
        return
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    yield path
    os.close(writer)


def test_what_is_no_regular_file_is_refused_and_not_waited_for(special: str) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for call in (
        lambda: fs.open(special),
        lambda: fs.open(special, writable=False),
        lambda: fs.open(special, create=True),
        lambda: fs.read_file(special),
        lambda: fs.file_size(special),
        lambda: fs.lock(special),
    ):
        with pytest.raises(OSError, match=r"not a regular file|No such device") as caught:  # a socket can't be opened
            call()
        assert caught.value.filename == special
    fs.leave_note(special)
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_is_not_written_through_a_pipe_or_device_that_has_its_temporary_name(
    special: str, tmp_path: pathlib.Path
) -> None:
    os.rename(special, f"{tmp_path}/checkpoint.tmp")
    with pytest.raises(OSError, match=r"not a regular file|No such device"):
        fs.write_file_atomically(f"{tmp_path}/checkpoint", b"0\n0\n")
    assert not os.path.lexists(f"{tmp_path}/checkpoint")


def test_a_pipe_that_nobody_writes_to_is_refused_at_once(tmp_path: pathlib.Path) -> None:
    os.mkfifo(f"{tmp_path}/x")
    program = (
        "import sys; from headpond.runtime.files import DiskFileSystem as F\n"
        "for one in (F().read_file, F().leave_note, lambda path: F().write_file_atomically(path[:-1] + 'y', b'')):\n"
        "    try: one(sys.argv[1])\n"
        "    except OSError as error: print(error.strerror)"
    )
    os.mkfifo(f"{tmp_path}/y.tmp")
    done = subprocess.run(
        [sys.executable, "-c", program, f"{tmp_path}/x"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[0] == "not a regular file, but a named pipe"
    assert len(done.stdout.splitlines()) == 2, "the note is nothing to fail over"


def test_a_short_write_is_continued(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, memoryview(data)[:3]))
    file.write(b"0123456789")
    file.write(memoryview(bytearray(b"abcdefgh")))
    assert file.size() == 18
    assert file.read(0, 100) == b"0123456789abcdefgh"


def test_a_write_that_fails_half_way_leaves_its_part_and_says_so(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)
    file.write(b"good")
    real = os.write
    answers = iter([4, errno.ENOSPC])

    def write(descriptor: int, data: Any) -> int:
        answer = next(answers)
        if answer == errno.ENOSPC:
            raise OSError(errno.ENOSPC, "full")
        return real(descriptor, memoryview(data)[:answer])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="full"):
        file.write(b"0123456789")
    monkeypatch.undo()
    assert file.size() == 8
    file.truncate(4)
    file.write(b"!")
    assert fs.read_file(f"{tmp_path}/a") == b"good!"


def test_a_cold_page_is_not_waited_for(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)
    file.write(b"abc")

    def preadv(*arguments: Any) -> int:
        raise BlockingIOError(errno.EAGAIN, "cold")

    monkeypatch.setattr(disk_file, "_nowait_flag", 8)
    monkeypatch.setattr(os, "preadv", preadv, raising=False)
    assert fs.open(f"{tmp_path}/a").read_nowait(0, 3) is None


def test_a_file_system_without_nowait_reads_plainly_from_then_on(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def preadv(*arguments: Any) -> int:
        calls.append(arguments)
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr(disk_file, "_nowait_flag", 8)
    monkeypatch.setattr(os, "preadv", preadv, raising=False)
    file = fs.open(f"{tmp_path}/a", create=True)
    file.write(b"abc")
    assert file.read_nowait(1, 100) == b"bc"
    assert file.read_nowait(0, 2) == b"ab"
    assert len(calls) == 1


def test_a_platform_without_nowait_reads_plainly(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_file, "_nowait_flag", 0)
    file = fs.open(f"{tmp_path}/a", create=True)
    file.write(b"abc")
    assert file.read_nowait(1, 100) == b"bc"


def test_a_part_in_memory_is_returned_as_that_part(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)
    file.write(b"x" * 100_000)

    def preadv(descriptor: int, buffers: Any, position: int, flags: int) -> int:
        buffers[0][:5] = b"xxxxx"
        return 5

    monkeypatch.setattr(os, "preadv", preadv, raising=False)
    if disk_file._nowait_flag:
        assert file.read_nowait(0, 100_000) == b"xxxxx"


def test_an_error_of_the_device_is_not_taken_for_cold(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def preadv(*arguments: Any) -> int:
        raise OSError(errno.EIO, "dying")

    monkeypatch.setattr(disk_file, "_nowait_flag", 8)
    monkeypatch.setattr(os, "preadv", preadv, raising=False)
    file = fs.open(f"{tmp_path}/a", create=True)
    file.write(b"abc")
    with pytest.raises(OSError, match="dying"):
        file.read_nowait(0, 3)


def test_a_file_closed_while_a_worker_reads_it_keeps_its_descriptor_until_the_read_ends(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.write_file_atomically(f"{tmp_path}/ours", b"ours")
    fs.write_file_atomically(f"{tmp_path}/other", b"other")
    file = fs.open(f"{tmp_path}/ours")
    real = os.pread
    others = []

    def pread(descriptor: int, size: int, position: int) -> bytes:
        file.close()  # the loop, at the worst moment
        others.append(fs.open(f"{tmp_path}/other"))  # would get the descriptor if it were free
        return real(descriptor, size, position)

    monkeypatch.setattr(os, "pread", pread)
    assert file.read(0, 4) == b"ours"
    monkeypatch.undo()
    with pytest.raises(OSError, match="closed"):
        file.read(0, 4)
    assert file._descriptor == -1


def test_a_failed_sync_is_never_tried_again(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "lost")

    monkeypatch.setattr(disk_file, "_sync_descriptor", fail)
    with pytest.raises(OSError, match="lost"):
        file.sync()
    monkeypatch.undo()
    with pytest.raises(OSError, match="lost"):
        file.sync()


def test_a_long_read_is_put_together_from_pieces(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_file, "_READ_PIECE_BYTES_MAX", 7)
    fs.write_file_atomically(f"{tmp_path}/a", bytes(range(100)))
    assert fs.read_file(f"{tmp_path}/a") == bytes(range(100))


def test_an_atomic_write_that_fails_leaves_the_old_content(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.write_file_atomically(f"{tmp_path}/a", b"old")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "lost")

    monkeypatch.setattr(disk_file, "_sync_descriptor", fail)
    with pytest.raises(OSError, match="lost"):
        fs.write_file_atomically(f"{tmp_path}/a", b"new")
    assert fs.read_file(f"{tmp_path}/a") == b"old"
    assert fs.list_dir(str(tmp_path)) == ["a"]


def test_an_atomic_write_syncs_the_content_before_the_name_and_the_folder_after(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    real = os.replace

    def replace(source: str, target: str) -> None:
        calls.append("rename")
        real(source, target)

    monkeypatch.setattr(disk_file, "_sync_descriptor", lambda descriptor: calls.append("content"))
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("folder"))
    monkeypatch.setattr(os, "replace", replace)
    fs.write_file_atomically(f"{tmp_path}/a", b"x")
    assert calls == ["content", "rename", "folder"]


def test_a_lock_held_by_another_process_is_respected_until_it_ends(tmp_path: pathlib.Path) -> None:
    program = (
        "import sys; from headpond.runtime.files import DiskFileSystem\n"
        "lock = DiskFileSystem().lock(sys.argv[1]); print(lock is not None, flush=True); sys.stdin.read()"
    )
    path = f"{tmp_path}/.lock"
    with subprocess.Popen(
        [sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        assert fs.lock(path) is None
        other.kill()
        other.wait()
    lock = fs.lock(path)
    assert lock is not None
    lock.close()


def test_a_mapping_in_use_survives_the_closing_of_its_file(tmp_path: pathlib.Path) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)
    file.write(b"mapped")
    view = memoryview(file.map())[2:]
    file.close()
    assert bytes(view) == b"pped"


def test_removing_a_tree_does_not_follow_links_out_of_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "keep").write_bytes(b"")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "outside")
    fs.remove_tree(f"{tmp_path}/tree")
    assert (tmp_path / "outside" / "keep").exists()
    assert not (tmp_path / "tree").exists()


def test_a_buffer_that_is_not_zeroed_is_an_ordinary_bytearray() -> None:
    make = posix.uninitialised_bytearray()
    buffer = make(100_000)
    assert type(buffer) is bytearray
    assert len(buffer) == 100_000
    buffer[:3] = b"abc"
    del buffer[3:]
    buffer.extend(b"def")
    assert buffer == b"abcdef"


def test_a_locked_folder_is_synced_through_one_descriptor_from_first_to_last(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fresh one would not be told of failures that another program's syncfs has been told of."""
    own = DiskFileSystem()
    opened: list[str] = []
    real = os.open
    lock = own.lock(f"{tmp_path}/.lock")
    assert lock is not None
    monkeypatch.setattr(os, "open", lambda path, *rest: (opened.append(path), real(path, *rest))[1])
    monkeypatch.setattr(posix, "syncfs", lambda descriptor: os.path.samestat(os.fstat(descriptor), tmp_path.stat()))
    assert own.sync_all(str(tmp_path)) and own.sync_all(str(tmp_path))
    assert opened == []
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    lock.close()
    lock.close()
    if before:
        assert len(os.listdir("/proc/self/fd")) == before - 3, "the lock, and the folder twice"
    assert own.sync_all(str(tmp_path))
    assert opened == [str(tmp_path)]


def test_the_process_that_syncs_has_a_description_of_its_own_of_the_folder(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells each description of a failure once: of two syncs that share one, only one would hear of it."""
    own = DiskFileSystem()
    lock = own.lock(f"{tmp_path}/.lock")
    assert lock is not None
    theirs = own.root_descriptor(str(tmp_path))
    assert theirs is not None
    fcntl.fcntl(theirs, fcntl.F_SETFL, os.O_NONBLOCK)  # a flag of the description
    flags: list[int] = []
    monkeypatch.setattr(posix, "syncfs", lambda ours: flags.append(fcntl.fcntl(ours, fcntl.F_GETFL)) or True)
    assert own.sync_all(str(tmp_path))
    assert not flags[0] & os.O_NONBLOCK
    lock.close()
    assert own.root_descriptor(str(tmp_path)) is None


def test_too_many_open_files_are_no_failed_sync(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *_: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    monkeypatch.setattr(os, "open", refuse)
    assert DiskFileSystem().sync_all(str(tmp_path)) is False


@pytest.mark.parametrize(
    ("release", "reports"),
    [
        ("5.7.19-generic", False),
        ("4.18.0", False),
        ("5.8", True),
        ("5.15.0-1-amd64", True),
        ("6.1", True),
        ("?", False),
    ],
)
def test_a_kernel_whose_syncfs_hides_failures_is_not_asked(release: str, reports: bool) -> None:
    assert posix.syncfs_reports_failures(release) is reports
