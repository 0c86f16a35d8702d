"""What every ``FileSystem`` adapter promises, run against the real disk and the simulated one."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Callable

import pytest

from headpond.model import InvariantBroken
from headpond.ports import FileSystem
from headpond.runtime.files import DiskFileSystem
from simulation.harness.clock import ManualClock
from simulation.harness.disk import SimulatedDisk
from simulation.harness.workers import SimulatedWorkers


@pytest.fixture(params=["real", "simulated"])
def fs(request: pytest.FixtureRequest) -> FileSystem:
    return DiskFileSystem() if request.param == "real" else SimulatedDisk()


@pytest.fixture
def home(fs: FileSystem, tmp_path: pathlib.Path) -> str:
    path = f"{tmp_path}/data"
    fs.make_dirs(path)
    return path


def test_writes_are_appended_and_read_back_from_any_position(fs: FileSystem, home: str) -> None:
    file = fs.open(f"{home}/a", create=True)
    file.write(b"hello ")
    file.write(memoryview(bytearray(b"world")))
    assert file.size() == 11
    assert file.read(0, 100) == b"hello world"
    assert file.read(6, 3) == b"wor"
    assert file.read(11, 5) == b""
    assert file.read(50, 5) == b""


def test_what_was_just_written_is_read_without_waiting(fs: FileSystem, home: str) -> None:
    file = fs.open(f"{home}/a", create=True)
    file.write(b"0123456789" * 10_000)
    found = file.read_nowait(5, 90_000)
    assert found is not None
    assert bytes(found) == (b"0123456789" * 10_000)[5:90_005]
    assert file.read_nowait(100_000, 10) == b""
    tail = file.read_nowait(99_995, 1_000_000)
    assert tail is not None
    assert bytes(tail) == b"56789"


def test_what_is_lent_is_what_would_be_read(fs: FileSystem, home: str) -> None:
    file = fs.open(f"{home}/a", create=True)
    file.write(b"0123456789" * 10_000)
    lent = file.lend_nowait(5, 90_000)
    assert lent is None or bytes(lent.view) == (b"0123456789" * 10_000)[5:90_005]
    assert file.lend_nowait(99_999, 2) is None, "there is only one byte"


def test_each_read_without_waiting_has_its_own_buffer(fs: FileSystem, home: str) -> None:
    file = fs.open(f"{home}/a", create=True)
    file.write(b"ab" * 50_000)
    first, second = file.read_nowait(0, 100_000), file.read_nowait(1, 99_999)
    assert first is not None
    assert second is not None
    assert bytes(first[:2]) == b"ab"
    assert bytes(second[:2]) == b"ba"


def test_a_file_opened_for_reading_sees_what_its_writer_appends_later(fs: FileSystem, home: str) -> None:
    writer = fs.open(f"{home}/a", create=True)
    reader = fs.open(f"{home}/a", writable=False)
    writer.write(b"later")
    assert reader.size() == 5
    found = reader.read_nowait(0, 100)
    assert found is not None
    assert bytes(found) == b"later"
    with pytest.raises(OSError):
        reader.write(b"no")


def test_reopening_appends_at_the_end(fs: FileSystem, home: str) -> None:
    with_content = fs.open(f"{home}/a", create=True)
    with_content.write(b"one")
    with_content.close()
    again = fs.open(f"{home}/a", create=True)
    again.write(b"two")
    assert again.read(0, 10) == b"onetwo"


def test_truncating_moves_the_end_for_later_writes(fs: FileSystem, home: str) -> None:
    file = fs.open(f"{home}/a", create=True)
    file.write(b"0123456789")
    file.truncate(4)
    assert file.size() == 4
    file.write(b"ab")
    file.sync()
    assert fs.read_file(f"{home}/a") == b"0123ab"
    assert fs.file_size(f"{home}/a") == 6


def test_truncating_beyond_the_end_adds_zeros(fs: FileSystem, home: str) -> None:
    file = fs.open(f"{home}/a", create=True)
    file.write(b"x")
    file.truncate(4)
    assert file.read(0, 10) == b"x\0\0\0"


def test_opening_a_missing_file_needs_create(fs: FileSystem, home: str) -> None:
    with pytest.raises(FileNotFoundError):
        fs.open(f"{home}/missing")
    with pytest.raises(FileNotFoundError):
        fs.open(f"{home}/no/such/folder", create=True)
    with pytest.raises(FileNotFoundError):
        fs.read_file(f"{home}/missing")


def test_exclusive_creation_refuses_an_existing_file(fs: FileSystem, home: str) -> None:
    fs.open(f"{home}/a", exclusive=True).close()
    with pytest.raises(FileExistsError):
        fs.open(f"{home}/a", exclusive=True)


def test_names_are_listed_sorted(fs: FileSystem, home: str) -> None:
    for name in ("b", "a", "c"):
        fs.open(f"{home}/{name}", create=True).close()
    fs.make_dirs(f"{home}/folder/inner")
    assert fs.list_dir(home) == ["a", "b", "c", "folder"]
    assert fs.is_dir(f"{home}/folder")
    assert not fs.is_dir(f"{home}/a")
    assert not fs.is_dir(f"{home}/missing")
    assert fs.exists(f"{home}/folder/inner")
    assert not fs.exists(f"{home}/missing")
    fs.make_dirs(f"{home}/folder/inner")  # again: fine
    with pytest.raises(FileNotFoundError):
        fs.list_dir(f"{home}/missing")


def test_renaming_replaces_the_target_and_keeps_open_files_working(fs: FileSystem, home: str) -> None:
    old = fs.open(f"{home}/old", create=True)
    old.write(b"old")
    fs.write_file_atomically(f"{home}/target", b"replaced")
    fs.rename(f"{home}/old", f"{home}/target")
    fs.sync_dir(home)
    old.write(b"+more")
    assert fs.list_dir(home) == ["target"]
    assert fs.read_file(f"{home}/target") == b"old+more"
    with pytest.raises(FileNotFoundError):
        fs.rename(f"{home}/old", f"{home}/target")


def test_a_folder_is_renamed_with_what_is_in_it(fs: FileSystem, home: str) -> None:
    fs.make_dirs(f"{home}/topic-0")
    fs.write_file_atomically(f"{home}/topic-0/a", b"x")
    fs.rename(f"{home}/topic-0", f"{home}/topic-0.gone-delete")
    assert fs.read_file(f"{home}/topic-0.gone-delete/a") == b"x"
    assert fs.list_dir(home) == ["topic-0.gone-delete"]


def test_a_removed_file_stays_readable_for_those_who_have_it_open(fs: FileSystem, home: str) -> None:
    file = fs.open(f"{home}/a", create=True)
    file.write(b"still here")
    fs.remove(f"{home}/a")
    fs.remove(f"{home}/a")  # gone already: fine
    fs.sync_dir(home)
    assert not fs.exists(f"{home}/a")
    assert file.read(0, 100) == b"still here"


def test_a_tree_is_removed_whole(fs: FileSystem, home: str) -> None:
    fs.make_dirs(f"{home}/t/inner/deep")
    fs.write_file_atomically(f"{home}/t/inner/a", b"x")
    fs.write_file_atomically(f"{home}/t/b", b"y")
    fs.remove_tree(f"{home}/t")
    fs.remove_tree(f"{home}/t")
    assert fs.list_dir(home) == []


def test_atomic_writing_leaves_the_new_content_and_nothing_else(fs: FileSystem, home: str) -> None:
    fs.write_file_atomically(f"{home}/checkpoint", b"first, and longer")
    fs.write_file_atomically(f"{home}/checkpoint", bytearray(b"second"))
    assert fs.read_file(f"{home}/checkpoint") == b"second"
    assert fs.list_dir(home) == ["checkpoint"]


def test_a_mapping_holds_the_whole_file(fs: FileSystem, home: str) -> None:
    file = fs.open(f"{home}/a", create=True)
    assert bytes(file.map()) == b""
    file.write(b"index entries")
    mapped = file.map()
    assert bytes(mapped) == b"index entries"
    del mapped
    file.close()
    file.close()  # twice: fine


def test_a_lock_excludes_the_second_taker_until_it_is_closed(fs: FileSystem, home: str) -> None:
    lock = fs.lock(f"{home}/.lock")
    assert lock is not None
    assert fs.lock(f"{home}/.lock") is None
    assert fs.lock(f"{home}/.lock") is None  # looking twice must not drop the first one's lock
    lock.close()
    again = fs.lock(f"{home}/.lock")
    assert again is not None
    again.close()


def test_syncing_everything_is_done_or_declined(fs: FileSystem, home: str) -> None:
    fs.write_file_atomically(f"{home}/a", b"x")
    assert fs.sync_all(home) in (True, False)


def test_space_and_times_are_told(fs: FileSystem, home: str) -> None:
    fs.write_file_atomically(f"{home}/a", b"x")
    assert 0 < fs.free_bytes(home) <= fs.total_bytes(home)
    assert fs.modified_ms(f"{home}/a") >= 0


def test_a_closed_file_refuses_everything(fs: FileSystem, home: str) -> None:
    file = fs.open(f"{home}/a", create=True)
    file.write(b"abc")
    file.close()
    uses: list[Callable[[], object]] = [lambda: file.write(b"x"), lambda: file.read(0, 1), lambda: file.truncate(0)]
    for use in uses:
        with pytest.raises(OSError):
            use()


def test_blocking_calls_are_refused_on_the_loop_and_quick_ones_are_not(fs: FileSystem, home: str) -> None:
    file = fs.open(f"{home}/a", create=True)

    async def scenario() -> None:
        file.write(b"quick")
        found = file.read_nowait(0, 5)
        assert found is not None
        assert bytes(found) == b"quick"
        assert file.size() == 5
        blocking: list[Callable[[], object]] = [
            lambda: file.read(0, 1),
            file.sync,
            file.map,
            lambda: file.truncate(0),
            lambda: fs.open(f"{home}/a"),
            lambda: fs.list_dir(home),
            lambda: fs.exists(home),
            lambda: fs.is_dir(home),
            lambda: fs.file_size(f"{home}/a"),
            lambda: fs.modified_ms(f"{home}/a"),
            lambda: fs.make_dirs(home),
            lambda: fs.rename(f"{home}/a", f"{home}/b"),
            lambda: fs.remove(f"{home}/a"),
            lambda: fs.remove_tree(f"{home}/a"),
            lambda: fs.sync_dir(home),
            lambda: fs.sync_all(home),
            lambda: fs.read_file(f"{home}/a"),
            lambda: fs.write_file_atomically(f"{home}/a", b""),
            lambda: fs.free_bytes(home),
            lambda: fs.total_bytes(home),
            lambda: fs.lock(f"{home}/.lock"),
        ]
        for call in blocking:
            with pytest.raises(InvariantBroken):
                call()
        file.close()

    asyncio.run(scenario())
    assert fs.read_file(f"{home}/a") == b"quick"
    assert fs.list_dir(home) == ["a"]


def test_simulated_workers_may_block_where_the_loop_may_not() -> None:
    disk = SimulatedDisk()

    async def scenario() -> bytes:
        workers = SimulatedWorkers(ManualClock())
        await workers.run(disk.write_file_atomically, "/a", b"from a worker")
        return await workers.run(disk.read_file, "/a")

    assert asyncio.run(scenario()) == b"from a worker"


def test_what_is_synced_is_there_after_memory_forgot_it(fs: FileSystem, home: str) -> None:
    file = fs.open(f"{home}/a", create=True)
    file.write(b"0123456789" * 10_000)
    file.sync()
    file.forget_cached()
    assert file.size() == 100_000
    assert file.read(99_990, 100) == b"0123456789"


def test_a_note_is_an_empty_file_and_never_an_error(fs: FileSystem, home: str) -> None:
    fs.leave_note(f"{home}/note")
    fs.leave_note(f"{home}/note")
    assert fs.file_size(f"{home}/note") == 0
