"""Index files are hints: whatever a crash or damage leaves of them, seeks by time and retention see every record.

The batches of these tests have one record each and are a few dozen bytes apart: with ``index_interval_bytes`` of 100
every second one has an index entry.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest

from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.log.log import PartitionLog
from headpond.storage.log.offset_index import ENTRY_BYTES
from headpond.storage.recovery import index_files
from simulation.harness.disk import SimulatedDisk
from simulation.harness.trace import Renamed, Truncated, Wrote
from unit.storage.storage_rig import DATA_DIR, NOW_MS, TP, Rig, make_batch, read_all

FOLDER = f"{DATA_DIR}/{TP}"
DAY_MS = 86_400_000
FIRST = f"{FOLDER}/00000000000000000000"


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real ones recovery would read logs of some hundred bytes from their start, and believe nothing."""
    monkeypatch.setattr(index_files, "INDEX_LAG_BYTES", 1)
    monkeypatch.setattr(log_checkpoint, "SNAPSHOT_BYTES", 1)


def run(test: Callable[[Rig], Awaitable[None]], **options: object) -> None:
    async def start() -> None:
        rig = Rig()
        rig.reconfigure(segment_bytes=1 << 20, **options)
        await test(rig)
        await rig.tasks.cancel_all()

    asyncio.run(start())


async def append(rig: Rig, log: PartitionLog, *timestamps_ms: int) -> None:
    for timestamp_ms in timestamps_ms:
        await rig.append(log, make_batch(timestamp_ms=timestamp_ms), flush=True)


async def offset_at(log: PartitionLog, timestamp_ms: int) -> int | None:
    found = await log.offset_for_timestamp(timestamp_ms, up_to_end_offset=log.log_end_offset)
    return None if found is None else found.offset


async def cut_file(rig: Rig, path: str, size_bytes: int) -> None:
    def cut() -> None:
        file = rig.disk.open(path)
        file.truncate(size_bytes)
        file.close()

    await rig.in_worker(cut)


# --- a roll, and no checkpoint since ----------------------------------------------------------------------------------


async def old_records_then_new_ones_and_a_roll(rig: Rig) -> PartitionLog:
    """The index files know the old ones only."""
    log = await rig.open()
    await append(rig, log, *[NOW_MS - 2 * DAY_MS] * 6)
    await rig.checkpoint()
    await append(rig, log, *[NOW_MS] * 6)
    await log.roll()
    await append(rig, log, NOW_MS)
    return log


@pytest.mark.parametrize("looks", list(itertools.permutations(("read", "seek", "retention"))))
def test_a_kill_after_a_roll_hides_no_record_from_seeks_and_costs_none_by_retention(looks: tuple[str, ...]) -> None:
    async def test(rig: Rig) -> None:
        await old_records_then_new_ones_and_a_roll(rig)
        await rig.die()
        log = await rig.open()
        for look in looks * 2:
            if look == "read":
                assert len(await read_all(log)) == 13
            elif look == "seek":
                assert await offset_at(log, NOW_MS - 1) == 6
            else:
                assert await log.delete_old_segments(NOW_MS + 1_000) == 0
            await rig.checkpoint()

    run(test, retention_ms=DAY_MS)


def test_what_recovery_made_anew_is_on_disk_after_the_next_checkpoint() -> None:
    async def test(rig: Rig) -> None:
        await old_records_then_new_ones_and_a_roll(rig)
        await rig.die()
        log = await rig.open()
        segment = log.segments[0]
        made = segment.index, segment.time_index
        await read_all(log)
        assert (segment.index, segment.time_index) == made  # the files know less
        await rig.checkpoint()
        assert segment.index is not None and segment.time_index is not None
        durable = SimulatedDisk(rig.disk.durable_image())
        assert durable.contents(f"{FIRST}.index") == segment.index.encode()
        assert durable.contents(f"{FIRST}.timeindex") == segment.time_index.encode()

    run(test)


def test_a_finished_segments_short_files_are_completed_from_its_batches_and_written() -> None:
    """As a folder has them that was copied while it was in use."""

    async def test(rig: Rig) -> None:
        await old_records_then_new_ones_and_a_roll(rig)
        await rig.close()
        whole = rig.disk.contents(f"{FIRST}.index"), rig.disk.contents(f"{FIRST}.timeindex")
        await cut_file(rig, f"{FIRST}.index", 16)
        await cut_file(rig, f"{FIRST}.timeindex", 12)
        log = await rig.open()
        assert await log.delete_old_segments(NOW_MS + 1_000) == 0
        assert await offset_at(log, NOW_MS - 1) == 6
        await rig.checkpoint()
        assert (rig.disk.contents(f"{FIRST}.index"), rig.disk.contents(f"{FIRST}.timeindex")) == whole

    run(test, retention_ms=DAY_MS)


def test_files_that_are_whole_are_not_written_again() -> None:
    async def test(rig: Rig) -> None:
        log = await old_records_then_new_ones_and_a_roll(rig)
        await rig.close()
        log = await rig.open()
        assert rig.manager.scanned_bytes < 200
        operations = len(rig.disk.trace)
        assert await offset_at(log, NOW_MS - 1) == 6
        await log.reads.load(log.segments[0])
        await rig.checkpoint()
        assert len(rig.disk.trace) == operations

    run(test)


# --- one file behind the other ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("entries_left", [0, 1])
def test_a_time_index_that_lacks_entries_is_made_anew(entries_left: int, is_clean: bool) -> None:
    async def test(rig: Rig) -> None:
        log = await rig.open()
        await append(rig, log, NOW_MS + 50, NOW_MS, *range(NOW_MS + 60, NOW_MS + 80))
        await rig.checkpoint()
        await (rig.close() if is_clean else rig.die())
        await cut_file(rig, f"{FIRST}.timeindex", 12 * entries_left)
        log = await rig.open()
        assert await offset_at(log, NOW_MS + 50) == 0
        assert await offset_at(log, NOW_MS + 79) == 21
        largest = await log.max_timestamp(up_to_end_offset=log.log_end_offset)
        assert largest is not None and largest.offset == 21

    run(test)


def test_the_largest_timestamps_come_first_and_the_time_index_is_empty() -> None:
    async def test(rig: Rig) -> None:
        log = await rig.open()
        await append(rig, log, *range(NOW_MS + 300, NOW_MS, -10))
        await rig.checkpoint()
        await rig.die()
        await cut_file(rig, f"{FIRST}.timeindex", 0)
        log = await rig.open()
        assert await offset_at(log, NOW_MS + 300) == 0

    run(test)


def test_a_checkpoint_that_was_killed_between_the_two_files_misleads_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_files, "INDEX_LAG_BYTES", 600)

    async def test(rig: Rig) -> None:
        log = await rig.open()
        await append(rig, log, NOW_MS + 50, *range(NOW_MS, NOW_MS + 9))
        await rig.checkpoint()
        await append(rig, log, NOW_MS, NOW_MS + 100, NOW_MS, NOW_MS)
        await rig.checkpoint()  # moves the recovery point, and leaves the index files as they are
        assert log.recovery_point == 14 and log.segments[0].has_unwritten_entries()
        await append(rig, log, NOW_MS, NOW_MS)
        start = len(rig.disk.trace)
        await rig.checkpoint()
        moments = [start + at for at, op in enumerate(rig.disk.trace[start:]) if isinstance(op, Wrote)]
        await rig.tasks.cancel_all()
        for moment in reversed(moments):
            rig.disk.kill_back_at(moment + 1)
            again = Rig(rig.disk, config=rig.config)
            log = await again.open()
            assert await offset_at(log, NOW_MS + 51) == 11
            await again.tasks.cancel_all()
            del rig.disk.trace[moment + 1 :]  # what that start did: the next one goes further back

    run(test)


def test_what_a_killed_checkpoint_wrote_is_durable_before_the_recovery_point_relies_on_it() -> None:
    async def test(rig: Rig) -> None:
        log = await rig.open()
        await append(rig, log, *range(NOW_MS, NOW_MS + 12))
        await rig.checkpoint()
        written = rig.disk.contents(f"{FIRST}.index")
        moment = next(at for at, op in enumerate(rig.disk.trace) if isinstance(op, Wrote) and op.data == written)
        await rig.tasks.cancel_all()
        rig.disk.kill_back_at(moment + 1)
        again = Rig(rig.disk, config=rig.config)
        log = await again.open()
        await again.checkpoint()
        assert log.recovery_point == 12
        segment = log.segments[0]
        assert segment.index is not None and segment.time_index is not None
        durable = SimulatedDisk(rig.disk.durable_image())
        assert durable.contents(f"{FIRST}.index") == segment.index.encode() != b""
        assert durable.contents(f"{FIRST}.timeindex") == segment.time_index.encode() != b""
        await again.tasks.cancel_all()

    run(test)


def test_the_first_checkpoint_after_a_crash_takes_nothing_from_the_files_that_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index_files, "INDEX_LAG_BYTES", 1 << 20)  # recovery believes none of it

    async def test(rig: Rig) -> None:
        log = await rig.open()
        await append(rig, log, *range(NOW_MS, NOW_MS + 20))
        await rig.checkpoint()
        await rig.die()
        log = await rig.open()
        assert log.recovery_point == 20 and rig.manager.scanned_bytes == log.size_bytes
        start = len(rig.disk.trace)
        await rig.checkpoint()
        assert log.segments[0].index_files_are_exact
        assert not [op for op in rig.disk.trace[start:] if isinstance(op, Truncated) and op.size]
        entries = {rig.disk.contents(f"{FIRST}.index"), rig.disk.contents(f"{FIRST}.timeindex")}
        assert not [op for op in rig.disk.trace[start:] if isinstance(op, Wrote) and op.data in entries]

    run(test)


def test_entries_behind_a_cut_are_taken_out_of_the_files_and_those_before_it_stay_there() -> None:
    async def test(rig: Rig) -> None:
        log = await rig.open()
        await append(rig, log, *range(NOW_MS + 100, NOW_MS + 120))
        await rig.checkpoint()
        before = rig.disk.contents(f"{FIRST}.timeindex")
        await log.truncate_to(9)
        start = len(rig.disk.trace)
        await append(rig, log, NOW_MS)
        await rig.checkpoint()
        written = [op for op in rig.disk.trace[start:] if isinstance(op, Wrote) and op.data in before]
        assert written == []  # what was right was not written again
        segment = log.segments[0]
        assert segment.time_index is not None
        assert rig.disk.contents(f"{FIRST}.timeindex") == segment.time_index.encode()
        await log.roll()
        await rig.checkpoint()
        await rig.close()
        log = await rig.open()
        assert await offset_at(log, NOW_MS + 109) is None

    run(test)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_file_that_lost_what_was_written_to_it_is_written_anew(suffix: str) -> None:
    async def test(rig: Rig) -> None:
        log = await rig.open()
        await append(rig, log, *range(NOW_MS, NOW_MS + 12))
        await log.roll()
        await append(rig, log, *range(NOW_MS + 20, NOW_MS + 40))
        await rig.checkpoint()
        path = f"{FOLDER}/00000000000000000012{suffix}"
        whole = rig.disk.contents(path)
        await cut_file(rig, path, 0)
        await append(rig, log, *range(NOW_MS + 40, NOW_MS + 50))
        await log.roll()
        await rig.checkpoint()  # finds that out
        start = len(rig.disk.trace)
        await rig.checkpoint()
        assert rig.disk.contents(path).startswith(whole)
        names = {op.name for op in rig.disk.trace[start:] if isinstance(op, Renamed)}
        assert path.rpartition("/")[2] in names  # at once: a crash leaves the old file or the new one
        assert log.recovery_point == log.log_end_offset

    run(test)


def test_an_index_that_is_made_anew_during_a_checkpoint_is_written_by_the_next_one() -> None:
    async def test(rig: Rig) -> None:
        log = await rig.open()
        await append(rig, log, *range(NOW_MS, NOW_MS + 12))
        await log.roll()
        await read_all(log)
        segment = log.segments[0]
        point = log_checkpoint.begin(log)
        assert await log.reads._rebuild_index(segment)
        assert log_checkpoint.finish(point)
        assert segment in log.unsaved and segment.index_entries_written == -1

    run(test)


@pytest.mark.parametrize("bit", range(3))
def test_a_bit_that_flips_in_an_offset_of_the_index_hides_no_record(bit: int) -> None:
    async def test(rig: Rig) -> None:
        log = await rig.open()
        await append(rig, log, *[NOW_MS] * 60)
        await log.roll()
        await rig.append(log, make_batch(), flush=True)
        await rig.close()
        index = f"{FIRST}.index"
        assert [rig.disk.contents(index)[slot * ENTRY_BYTES + 3] for slot in range(3)] == [5, 10, 15]  # 14, 13 or 11
        rig.disk.flip_bit(index, 2 * ENTRY_BYTES + 3, bit)
        log = await rig.open()
        for offset in range(60):
            assert (await read_all(log, from_offset=offset))[0].base_offset == offset

    run(test, index_interval_bytes=400)


# --- retention and checkpoints ----------------------------------------------------------------------------------------


def test_retention_waits_for_the_checkpoint_that_writes_into_the_folder_and_appends_go_on() -> None:
    async def test(rig: Rig) -> None:
        log = await rig.open()
        await append(rig, log, *[NOW_MS - 2 * DAY_MS] * 6)
        await rig.checkpoint()
        await append(rig, log, *[NOW_MS - 2 * DAY_MS] * 4)
        await log.roll()
        await rig.append(log, make_batch())  # what the round has to wait for
        checkpoint = asyncio.ensure_future(rig.checkpoint())
        await asyncio.sleep(0)  # it has noted what it will write
        retention = asyncio.ensure_future(log.delete_old_segments(NOW_MS))
        while not checkpoint.done():
            assert log.accepts and not retention.done()
            await asyncio.sleep(0)
        assert log.recovery_point == 11
        assert await retention == 1
        left = [name for name in await rig.files(FOLDER) if name.startswith("0" * 20)]
        assert left and all(name.endswith(".deleted") for name in left)

    run(test, retention_ms=DAY_MS)


def test_a_checkpoint_leaves_a_log_alone_whose_files_are_being_moved_and_comes_back_to_it() -> None:
    async def test(rig: Rig) -> None:
        log = await rig.open()
        await append(rig, log, *[NOW_MS - 2 * DAY_MS] * 6)
        await log.roll()
        await append(rig, log, NOW_MS)
        retention = asyncio.ensure_future(log.delete_old_segments(NOW_MS))
        for _ in range(100):
            if log.is_held:
                break
            await asyncio.sleep(0)
        await rig.checkpoint()
        assert log.recovery_point == 0
        assert await retention == 1
        await rig.checkpoint()
        assert log.recovery_point == 7
        assert sorted(name[:20] for name in await rig.files(FOLDER) if name.endswith("index")) == ["0" * 19 + "6"] * 2

    run(test, retention_ms=DAY_MS)


def test_records_without_timestamps_are_as_old_as_the_last_write_to_their_segment() -> None:
    async def test(rig: Rig) -> None:
        rig.disk._now_ms = rig.clock.now_ms
        log = await rig.open()
        await append(rig, log, -1)
        rig.clock.wall_offset_ms += 10 * DAY_MS
        await append(rig, log, -1)
        assert await log.delete_old_segments(rig.clock.now_ms() + 1_000) == 0
        await log.roll()
        await append(rig, log, -1)
        assert await log.delete_old_segments(rig.clock.now_ms() + 1_000) == 0
        await rig.die()
        log = await rig.open()
        assert await log.delete_old_segments(rig.clock.now_ms() + 1_000) == 0
        assert await log.delete_old_segments(rig.clock.now_ms() + DAY_MS + 1_000) == 2

    run(test, retention_ms=DAY_MS, segment_ms=1 << 60)


def test_a_segment_with_a_damaged_batch_is_as_young_as_the_file_if_nothing_tells_more() -> None:
    async def test(rig: Rig) -> None:
        rig.disk._now_ms = rig.clock.now_ms
        log = await rig.open()
        await append(rig, log, *[NOW_MS - 2 * DAY_MS] * 6, *[NOW_MS] * 6)
        await log.roll()
        await append(rig, log, NOW_MS)
        await rig.close()
        rig.disk.flip_bit(f"{FIRST}.log", 3 * len(make_batch()) + 16, 6)  # the fourth batch's magic byte
        await rig.in_worker(rig.disk.remove, f"{FIRST}.index")
        log = await rig.open()
        assert await log.delete_old_segments(NOW_MS + 1_000) == 0
        assert await log.delete_old_segments(NOW_MS + DAY_MS + 1_000) == 2

    run(test, retention_ms=DAY_MS)


def test_a_seek_that_meets_a_segment_which_retention_has_taken_looks_again() -> None:
    async def test(rig: Rig) -> None:
        log = await rig.open()
        for day in (3, 2, 1):
            await append(rig, log, *[NOW_MS - day * DAY_MS] * 4)
            await log.roll()
        gone = log.segments[0]
        assert await log.delete_old_segments(NOW_MS - DAY_MS) == 1
        rig.clock.advance(2)
        await asyncio.sleep(0)
        attempts = 0

        async def seek() -> int:
            nonlocal attempts
            attempts += 1
            await log.reads.load(gone if attempts == 1 else log.segments[0])
            return attempts

        assert await log.reads._attempt(seek) == 2

    run(test, retention_ms=DAY_MS + 1)
