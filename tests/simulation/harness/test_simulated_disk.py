"""The simulated disk loses what a real one may lose, all of it, and never what it promised to keep."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import pytest

from simulation.harness.disk import SimulatedDisk
from simulation.harness.trace import Op, Wrote


def contents_after_crashes(disk: SimulatedDisk, path: str, *, at_the_end: bool = True) -> set[bytes | None]:
    """Every content that the file may have after a power cut at the end of the trace (or at any moment)."""
    found: set[bytes | None] = set()
    for state in disk.crash_states(first_operation=len(disk.trace) if at_the_end else 0):
        survivor = disk.after(state)
        found.add(survivor.read_file(path) if survivor.exists(path) else None)
    return found


def new_file(disk: SimulatedDisk, path: str = "/a") -> Callable[[bytes], None]:
    file = disk.open(path, create=True)
    file.sync()
    disk.sync_dir("/")
    return file.write


def test_synced_content_under_a_synced_name_survives_every_crash() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    file.write(b"safe")
    file.sync()
    disk.sync_dir("/")
    assert contents_after_crashes(disk, "/a") == {b"safe"}


def test_a_name_is_lost_without_sync_of_its_folder_however_often_the_file_was_synced() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    file.write(b"safe?")
    file.sync()
    file.sync()
    assert contents_after_crashes(disk, "/a") == {None, b"safe?"}


def test_files_in_a_folder_whose_own_name_was_not_synced_are_lost() -> None:
    disk = SimulatedDisk()
    disk.make_dirs("/t-0")
    file = disk.open("/t-0/a", create=True)
    file.sync()
    disk.sync_dir("/t-0")
    assert contents_after_crashes(disk, "/t-0/a") == {None, b""}
    disk.sync_dir("/")
    assert contents_after_crashes(disk, "/t-0/a") == {b""}


def test_unsynced_writes_survive_in_any_combination_with_zeros_for_what_is_missing_between() -> None:
    disk = SimulatedDisk()
    write = new_file(disk)
    write(b"A")
    write(b"B")
    found = contents_after_crashes(disk, "/a")
    assert {b"", b"A", b"AB", b"\0B"} <= found
    assert b"A\0" in found  # the length grew, the content did not arrive
    assert any(
        content not in (b"A\0", b"AB") and content and content[:1] == b"A" and len(content) == 2 for content in found
    )


def test_a_truncation_that_was_not_synced_lets_the_old_tail_come_back_behind_new_data() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    file.write(b"oldold")
    file.sync()
    disk.sync_dir("/")
    file.truncate(2)
    file.write(b"N")
    found = contents_after_crashes(disk, "/a")
    assert {b"oldold", b"ol", b"olN", b"olNold"[:6]} <= found
    file.sync()
    assert contents_after_crashes(disk, "/a") == {b"olN"}


def test_a_rename_is_there_or_not_but_never_half() -> None:
    disk = SimulatedDisk()
    disk.write_file_atomically("/a", b"old")
    disk.trace.clear()
    disk = SimulatedDisk(disk.durable_image())
    disk.write_file_atomically("/a", b"new")
    assert contents_after_crashes(disk, "/a", at_the_end=False) == {b"old", b"new"}
    assert contents_after_crashes(disk, "/a") == {b"new"}


def test_a_checkpoint_renamed_without_sync_may_come_back_empty() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a.tmp", create=True)
    file.write(b"content")
    disk.rename("/a.tmp", "/a")
    assert b"" in contents_after_crashes(disk, "/a")


def test_the_removal_of_a_file_may_be_undone_until_its_folder_is_synced() -> None:
    disk = SimulatedDisk()
    disk.write_file_atomically("/a", b"x")
    disk.remove("/a")
    assert contents_after_crashes(disk, "/a") == {None, b"x"}
    disk.sync_dir("/")
    assert contents_after_crashes(disk, "/a") == {None}


def test_the_last_write_is_torn_at_its_first_and_last_byte() -> None:
    disk = SimulatedDisk()
    write = new_file(disk)
    write(b"0123456789")
    found = contents_after_crashes(disk, "/a")
    assert {b"0", b"012345678", b"01234", b"0123456789", b"0" + bytes(9), bytes(10)} <= found


def test_many_pending_operations_are_sampled_within_the_limit_and_repeatably() -> None:
    disk = SimulatedDisk()
    write = new_file(disk)
    for number in range(40):
        write(bytes([number]))
    end = len(disk.trace)
    once = [state.image for state in disk.crash_states(first_operation=end, states_per_moment_max=100)]
    again = [state.image for state in disk.crash_states(first_operation=end, states_per_moment_max=100)]
    assert once == again
    assert 60 <= len(once) <= 100
    sizes = {len(image.files[2]) for image in once}
    assert {0, 40} <= sizes
    assert len(sizes) > 15


def test_marks_tell_what_had_been_promised_when_the_power_went() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    disk.sync_dir("/")
    file.write(b"1")
    file.sync()
    disk.mark("one is safe")
    file.write(b"2")
    with_promise = [state for state in disk.crash_states() if "one is safe" in state.marks]
    without = [state for state in disk.crash_states() if not state.marks]
    assert with_promise
    assert without
    assert all(disk.after(state).read_file("/a").startswith(b"1") for state in with_promise)
    assert any("kept #6: write 1 bytes at 1" in state.story for state in with_promise)


def test_a_failed_sync_loses_what_was_pending_although_readers_still_see_it() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    disk.sync_dir("/")
    file.write(b"gone")
    disk.faults.fail_next_syncs()
    with pytest.raises(OSError):
        file.sync()
    with pytest.raises(OSError):
        file.sync()  # final for this handle
    assert disk.read_file("/a") == b"gone"
    again = disk.open("/a")
    again.write(b"kept")
    again.sync()  # succeeds, and lies about the first four bytes
    assert contents_after_crashes(disk, "/a") == {b"\0\0\0\0kept"}


def test_a_full_disk_cuts_a_write_short_and_recovers_when_there_is_space() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    disk.faults.space_bytes = 6
    file.write(b"1234")
    with pytest.raises(OSError) as caught:
        file.write(b"5678")
    assert caught.value.errno == errno.ENOSPC
    assert file.size() == 6
    file.truncate(4)
    disk.faults.heal()
    file.write(b"5678")
    assert disk.read_file("/a") == b"12345678"


def test_a_write_can_be_made_to_stop_half_way() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    disk.faults.fail_next_write("/a", after_bytes=2)
    with pytest.raises(OSError):
        file.write(b"abcd")
    assert disk.read_file("/a") == b"ab"


def test_unreadable_and_cold_files() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    file.write(b"abc")
    disk.faults.make_cold("/a")
    assert file.read_nowait(0, 3) is None
    assert file.read(0, 3) == b"abc"
    assert file.read_nowait(0, 3) == b"abc"
    disk.faults.fail_reads("/a")
    reads: list[Callable[[], object]] = [
        lambda: file.read(0, 3),
        lambda: file.read_nowait(0, 3),
        lambda: disk.read_file("/a"),
        file.map,
    ]
    for read in reads:
        with pytest.raises(OSError):
            read()


def test_bit_rot_hits_memory_and_platter_and_does_not_make_anything_else_durable() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    file.write(b"aa")
    file.sync()
    disk.sync_dir("/")
    file.write(b"bb")
    disk.flip_bit("/a", 1, bit=0)
    disk.flip_bit("/a", 2, bit=0)
    assert disk.read_file("/a") == b"a`cb"
    found = contents_after_crashes(disk, "/a")
    assert {b"a`", b"a`cb"} <= found
    assert not any(content is not None and content.startswith(b"aa") for content in found)


def test_a_power_cut_kills_open_files_and_releases_locks() -> None:
    disk = SimulatedDisk()
    lock = disk.lock("/.lock")
    file = disk.open("/a", create=True)
    file.write(b"x")
    file.sync()
    disk.sync_dir("/")
    disk.power_cut(random.Random(1))
    with pytest.raises(OSError):
        file.write(b"y")
    assert lock is not None
    assert disk.lock("/.lock") is not None
    assert disk.read_file("/a") == b"x"


def test_killing_the_process_keeps_what_was_written() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    file.write(b"in the page cache")
    disk.kill()
    with pytest.raises(OSError):
        file.read(0, 1)
    assert disk.read_file("/a") == b"in the page cache"


def test_a_process_that_was_killed_earlier_has_written_less_and_nothing_became_durable_by_that() -> None:
    disk = SimulatedDisk()
    write = new_file(disk)
    write(b"ab")
    moment = len(disk.trace)
    write(b"cd")
    disk.open("/b", create=True).sync()
    disk.kill_back_at(moment)
    assert disk.read_file("/a") == b"ab"
    assert not disk.exists("/b")
    assert contents_after_crashes(disk, "/a") >= {b"", b"ab"}
    with pytest.raises(OSError):
        write(b"ef")


@pytest.mark.parametrize("pending", range(9))
def test_however_few_disks_are_asked_for_what_a_kill_leaves_is_among_them(pending: int) -> None:
    disk = SimulatedDisk()
    write = new_file(disk)
    for _ in range(pending):
        write(b"x")
    moment = len(disk.trace)
    states = disk.crash_states(first_operation=moment, states_per_moment_max=4)
    assert b"x" * pending in {disk.after(state).read_file("/a") for state in states}


def test_the_same_dice_give_the_same_power_cut() -> None:
    def run(seed: int) -> bytes | None:
        disk = SimulatedDisk()
        write = new_file(disk)
        for number in range(10):
            write(bytes([65 + number]) * 3)
        disk.power_cut(random.Random(seed))
        return disk.read_file("/a")

    assert [run(seed) for seed in range(30)] == [run(seed) for seed in range(30)]
    assert len({run(seed) for seed in range(30)}) > 5


def test_a_failpoint_before_an_operation_can_stop_it() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)

    def cut(op: Op) -> None:
        if isinstance(op, Wrote):
            raise KeyboardInterrupt

    disk.before_operation = cut
    with pytest.raises(KeyboardInterrupt):
        file.write(b"never")
    assert disk.read_file("/a") == b""
