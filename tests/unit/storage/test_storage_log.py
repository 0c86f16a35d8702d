"""One partition's log: what is appended is read back, rolled, repaired, and survives restarts."""

from __future__ import annotations

import asyncio

import pytest

from headpond.model import OffsetOutOfRange, StorageFailed
from headpond.storage.log.reading import FINISHED_SEGMENTS_LOADED_MAX
from simulation.harness.disk import SimulatedDisk
from support.batches import split
from unit.storage.storage_rig import DATA_DIR, NOW_MS, TP, Rig, fill, make_batch, read_all, read_now, writable

FOLDER = f"{DATA_DIR}/{TP}"


def test_a_new_log_touches_no_file_before_its_first_append() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        operations = len(rig.disk.trace)
        assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (0, 0, 0)
        assert not log.can_append(100, NOW_MS, NOW_MS)
        assert len(rig.disk.trace) == operations
        await rig.append(log, make_batch())
        assert rig.disk.contents(f"{FOLDER}/00000000000000000000.log")
        assert rig.disk.contents(f"{FOLDER}/partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"

    asyncio.run(run())


def test_appended_batches_get_dense_offsets_and_the_leaders_epoch_and_come_back_in_order() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        first = await rig.append(log, make_batch(3), epoch=7)
        second = await rig.append(log, make_batch(2), epoch=7)
        assert (first.base_offset, first.last_offset, first.append_time_ms) == (0, 2, -1)
        assert (second.base_offset, second.last_offset) == (3, 4)
        batches = await read_all(log)
        assert [(batch.base_offset, batch.last_offset, batch.leader_epoch) for batch in batches] == [
            (0, 2, 7),
            (3, 4, 7),
        ]
        assert all(batch.crc_is_right for batch in batches)
        assert log.epochs.entries == ((7, 0),)

    asyncio.run(run())


def test_the_log_rolls_when_the_next_batch_would_not_fit_into_the_segment() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 30)
        assert len(log.segments) > 2
        assert all(segment.size_bytes <= rig.config.segment_bytes for segment in log.segments)
        assert [batch.base_offset for batch in await read_all(log)] == list(range(0, 60, 2))

    asyncio.run(run())


def test_the_log_rolls_when_a_timestamp_is_too_far_from_the_segments_first() -> None:
    async def run() -> None:
        rig = Rig()
        rig.reconfigure(segment_ms=1_000)
        log = await rig.open()
        await rig.append(log, make_batch(timestamp_ms=NOW_MS))
        await rig.append(log, make_batch(timestamp_ms=NOW_MS + 1_000))
        assert len(log.segments) == 1
        await rig.append(log, make_batch(timestamp_ms=NOW_MS + 1_001))
        assert log.segments.base_offsets == [0, 2]

    asyncio.run(run())


def test_the_log_rolls_when_an_index_is_full() -> None:
    async def run() -> None:
        rig = Rig()
        rig.reconfigure(segment_bytes=1 << 20, segment_index_bytes=24)
        log = await rig.open()
        await fill(rig, log, 30)
        assert len(log.segments) > 1
        assert all(len(segment.time_index or ()) <= 2 for segment in log.segments)

    asyncio.run(run())


def test_a_read_from_inside_a_batch_returns_that_whole_batch() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 4, count=5)
        read = read_now(log, 7, up_to_end_offset=20, size_bytes_max=1 << 20, at_least_one_batch=True)
        assert read is not None
        assert [batch.base_offset for batch in split(bytes(read.data))] == [5, 10, 15]
        assert read.next_offset == 20

    asyncio.run(run())


def test_a_read_returns_whole_batches_within_the_size_and_below_the_given_end() -> None:
    async def run() -> None:
        rig = Rig()
        rig.reconfigure(segment_bytes=1 << 20)
        log = await rig.open()
        await fill(rig, log, 50)
        size = log.size_bytes // 50
        for end in range(0, 101, 7):
            for limit in (0, 1, size - 1, size, 3 * size + 5, 20 * size, 1 << 20):
                read = read_now(log, 20, up_to_end_offset=end, size_bytes_max=limit, at_least_one_batch=False)
                assert read is not None
                batches = list(split(bytes(read.data)))
                whole_below_end = max(0, (end - 20) // 2)
                assert [batch.base_offset for batch in batches] == [
                    20 + 2 * number for number in range(min(whole_below_end, limit // size))
                ]
                assert read.next_offset == 20 + 2 * len(batches)

    asyncio.run(run())


@pytest.mark.parametrize("limit", [3_000, 20_000, 50_000, 200_000])
@pytest.mark.parametrize("sizes", [(100,), (5_000,), (30_000,), (100, 30_000), (9_000, 100, 100, 2_000)])
def test_a_reader_that_reads_on_misses_nothing_and_gets_most_of_what_it_allows(
    sizes: tuple[int, ...], limit: int
) -> None:
    async def run() -> None:
        rig = Rig()
        rig.reconfigure(segment_bytes=1 << 20, index_interval_bytes=4_096)
        log = await rig.open()
        while log.size_bytes < 600_000:
            await rig.append(log, make_batch(2, value_bytes=sizes[log.log_end_offset // 2 % len(sizes)]))
        offset = 0
        while offset < log.log_end_offset:
            read = read_now(
                log, offset, up_to_end_offset=log.log_end_offset, size_bytes_max=limit, at_least_one_batch=True
            )
            assert read is not None
            batches = list(split(bytes(read.data)))
            assert [batch.base_offset for batch in batches] == list(range(offset, read.next_offset, 2))
            assert len(read.data) <= limit or len(batches) == 1
            following = read_now(
                log, read.next_offset, up_to_end_offset=log.log_end_offset, size_bytes_max=1, at_least_one_batch=True
            )
            assert following is not None
            assert (
                len(read.data) >= limit * 7 // 8 or len(read.data) + len(following.data) > limit or not following.data
            )
            offset = read.next_offset

    asyncio.run(run())


def test_at_least_one_batch_comes_even_beyond_the_size_but_never_beyond_the_end() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 3)
        read = read_now(log, 2, up_to_end_offset=6, size_bytes_max=1, at_least_one_batch=True)
        assert read is not None and [batch.base_offset for batch in split(bytes(read.data))] == [2]
        read = read_now(log, 2, up_to_end_offset=3, size_bytes_max=1, at_least_one_batch=True)
        assert read is not None and read == (b"", 2)

    asyncio.run(run())


def test_offsets_outside_of_the_log_are_out_of_range_and_its_end_is_empty() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 3)
        await log.advance_log_start(2)
        for offset in (-1, 1, 7):
            with pytest.raises(OffsetOutOfRange):
                read_now(log, offset, up_to_end_offset=6, size_bytes_max=100, at_least_one_batch=True)
        read = read_now(log, 6, up_to_end_offset=6, size_bytes_max=100, at_least_one_batch=True)
        assert read is not None and not read.data

    asyncio.run(run())


def test_what_is_not_in_memory_is_read_through_a_worker() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 30)
        rig.disk.faults.make_cold(FOLDER)
        assert read_now(log, 0, up_to_end_offset=60, size_bytes_max=1 << 20, at_least_one_batch=True) is None
        assert [batch.base_offset for batch in await read_all(log)] == list(range(0, 60, 2))

    asyncio.run(run())


@pytest.mark.parametrize("is_clean", [True, False])
def test_after_a_restart_the_log_is_as_before(is_clean: bool) -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 30)
        await rig.append(log, make_batch(2, producer_id=9, base_sequence=0), epoch=5)
        before = [batch.data for batch in await read_all(log)]
        await (rig.close() if is_clean else rig.die())
        log = await rig.open()
        assert (log.log_end_offset, log.flushed_end_offset) == (62, 62)
        assert [batch.data for batch in await read_all(log)] == before
        assert log.epochs.entries == ((3, 0), (5, 60))
        assert log.producers.get(9) is not None
        await rig.append(log, make_batch(), epoch=6)
        assert (await read_all(log))[-1].base_offset == 62

    asyncio.run(run())


def test_a_clean_restart_reads_only_the_end_of_the_last_segment() -> None:
    async def run() -> None:
        rig = Rig()
        rig.reconfigure(segment_bytes=100_000)
        log = await rig.open()
        await fill(rig, log, 500)
        size_bytes = log.size_bytes
        await rig.close()
        log = await rig.open()
        assert log.log_end_offset == 1_000
        assert size_bytes > 40_000
        assert rig.manager.scanned_bytes < 500
        active = log.segments[-1]
        assert active.index is not None and len(active.index) > 10
        await rig.die()

    asyncio.run(run())


def test_a_write_that_fails_leaves_nothing_visible_and_the_log_repairs_itself() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 2)
        rig.disk.faults.space_bytes = 30
        data, header = writable(make_batch(3))
        with pytest.raises(StorageFailed):
            log.append(data, header, leader_epoch=3, now_ms=NOW_MS)
        assert log.log_end_offset == 4
        assert not log.can_append(10, NOW_MS, NOW_MS)
        assert [batch.base_offset for batch in await read_all(log)] == [0, 2]  # reads go on
        rig.disk.faults.heal()
        assert (await rig.append(log, make_batch(1), epoch=3, flush=True)).base_offset == 4
        await rig.die()
        log = await rig.open()
        assert [batch.base_offset for batch in await read_all(log)] == [0, 2, 4]

    asyncio.run(run())


def test_a_failed_write_of_the_disk_full_kind_is_repaired_while_the_disk_is_still_full() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 2)
        rig.disk.faults.space_bytes = 30
        data, header = writable(make_batch(3))
        for _ in range(3):
            with pytest.raises(StorageFailed):
                log.append(data, header, leader_epoch=3, now_ms=NOW_MS)
            await log.make_room(len(data), NOW_MS, NOW_MS)
        assert rig.disk.contents(f"{FOLDER}/00000000000000000000.log")[log.size_bytes :] == b""

    asyncio.run(run())


def test_a_corrupt_batch_is_never_served() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 4)
        size = log.size_bytes // 4
        await rig.close()
        disk: SimulatedDisk = rig.disk
        for bit in range(8):  # the magic byte of the second batch
            disk.flip_bit(f"{FOLDER}/00000000000000000000.log", size + 16, bit)
        log = await rig.open()
        served = await read_all(log)
        assert all(batch.crc_is_right for batch in served)

    asyncio.run(run())


def test_waiting_for_room_is_shared_and_survives_a_caller_that_gives_up() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        waiting = [asyncio.ensure_future(log.make_room(100, NOW_MS, NOW_MS)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.gather(*waiting[1:])
        assert log.segments.base_offsets == [0]
        assert log.can_append(100, NOW_MS, NOW_MS)

    asyncio.run(run())


def test_connections_that_wait_for_the_same_roll_do_not_roll_again() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        while log.can_append(100, NOW_MS, NOW_MS) or log.active is None:
            await rig.append(log, make_batch())
        before = len(log.segments)

        async def produce(number: int) -> None:
            await rig.append(log, make_batch(mark=number))

        await asyncio.gather(*(produce(number) for number in range(4)))
        assert len(log.segments) == before + 1

    asyncio.run(run())


def test_a_full_disk_at_the_first_append_is_an_error_that_goes_away_with_space() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        rig.disk.faults.space_bytes = 10
        for _ in range(2):
            with pytest.raises(StorageFailed):
                await log.make_room(100, NOW_MS, NOW_MS)
        rig.disk.faults.heal()
        assert (await rig.append(log, make_batch(), flush=True)).base_offset == 0
        await rig.die()
        assert (await rig.open()).log_end_offset == 1

    asyncio.run(run())


def test_only_a_few_finished_segments_stay_open() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        for number in range(40):
            await rig.append(log, make_batch(mark=number), flush=True)
            await log.roll()
        await rig.checkpoint()
        assert len(log.segments) > 30
        assert [batch.base_offset for batch in await read_all(log)] == list(range(40))
        assert sum(segment.file is not None for segment in log.segments) <= FINISHED_SEGMENTS_LOADED_MAX + 1
        assert [batch.base_offset for batch in await read_all(log)] == list(range(40))

    asyncio.run(run())
