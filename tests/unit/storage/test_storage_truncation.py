"""Cutting a log: what goes, what stays, and what a crash or a failure on the way leaves."""

from __future__ import annotations

import asyncio

import pytest

from headpond.model import StorageFailed
from headpond.storage.log.reading import FINISHED_SEGMENTS_LOADED_MAX
from simulation.harness.trace import Op, Renamed
from unit.storage.storage_rig import NOW_MS, Rig, fill, make_batch, read_all


def test_truncation_keeps_whole_batches_below_the_offset_and_survives_a_crash() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 30)
        await rig.append(log, make_batch(2), epoch=4)
        await rig.checkpoint()
        await log.truncate_to(35)
        assert log.log_end_offset == 34  # the batch 34..35 goes as a whole
        assert [batch.base_offset for batch in await read_all(log)] == list(range(0, 34, 2))
        assert log.epochs.entries == ((3, 0),)
        await rig.append(log, make_batch(1, mark=99), epoch=5, flush=True)
        expected = [batch.data for batch in await read_all(log)]
        await rig.die()
        log = await rig.open()
        assert [batch.data for batch in await read_all(log)] == expected
        assert log.epochs.entries == ((3, 0), (5, 34))

    asyncio.run(run())


def test_truncation_forgets_what_producers_stored_above_it() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(2, producer_id=1, base_sequence=0))
        await rig.append(log, make_batch(2, producer_id=1, base_sequence=2))
        await rig.append(log, make_batch(2, producer_id=2, base_sequence=0))
        await log.truncate_to(2)
        assert log.producers.get(2) is None
        state = log.producers.get(1)
        assert state is not None and state.last_sequence == 1

    asyncio.run(run())


def test_a_restarted_log_is_empty_at_its_new_start() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 30)
        await log.restart_at(500)
        assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (500, 500, 0)
        appended = await rig.append(log, make_batch(), flush=True)
        assert appended.base_offset == 500
        await rig.die()
        log = await rig.open()
        assert (log.log_start_offset, log.log_end_offset) == (500, 501)

    asyncio.run(run())


def test_a_cut_closes_the_old_file_of_its_last_segment_when_the_reader_that_holds_it_is_done() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 30)
        kept = log.segments[0]
        await log.read_cold(0, up_to_end_offset=2, size_bytes_max=1, at_least_one_batch=True)
        held = kept.file
        assert held is not None
        kept.pin()  # as a worker that reads from it does
        await log.truncate_to(3)
        assert held is not kept.file and held.read_nowait(0, 8) == bytes(8)
        kept.unpin()
        with pytest.raises(OSError, match="closed"):
            held.read_nowait(0, 8)
        assert [batch.base_offset for batch in await read_all(log)] == [0]

    asyncio.run(run())


def test_a_truncation_that_fails_half_way_takes_the_log_offline_until_the_next_start() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await fill(rig, log, 30)
        await log.flush()

        def fail_the_second_rename(operation: Op, seen: list[Op] = []) -> None:  # noqa: B006
            if isinstance(operation, Renamed) and ".log" in operation.name:
                seen.append(operation)
                if len(seen) == 2:
                    raise OSError("the device is gone")

        rig.disk.before_operation = fail_the_second_rename
        with pytest.raises(StorageFailed):
            await log.truncate_to(3)
        rig.disk.before_operation = None
        assert not log.can_append(10, NOW_MS, NOW_MS)
        with pytest.raises(StorageFailed):
            await log.make_room(10, NOW_MS, NOW_MS)
        await rig.checkpoint()
        await rig.close()
        assert ".kafka_cleanshutdown" not in await rig.files()
        log = await rig.open()
        batches = await read_all(log)
        assert len(batches) >= 1
        assert [batch.base_offset for batch in batches] == list(range(0, log.log_end_offset, 2))

    asyncio.run(run())


def test_a_segment_that_a_cut_makes_the_active_one_again_stays_open_while_others_are_read() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        for number in range(FINISHED_SEGMENTS_LOADED_MAX + 3):
            await rig.append(log, make_batch(2, mark=number), flush=True)
            await log.roll()
        await rig.checkpoint()
        end_offset = 2 * (FINISHED_SEGMENTS_LOADED_MAX + 1)
        await read_all(log, from_offset=end_offset - 2)
        await log.truncate_to(end_offset)
        for offset in range(0, end_offset - 2, 2):
            await read_all(log, from_offset=offset, size_bytes_max=1)
        assert (await rig.append(log, make_batch(2), flush=True)).base_offset == end_offset
        assert len(await read_all(log)) == FINISHED_SEGMENTS_LOADED_MAX + 2

    asyncio.run(run())
