"""Finding records by time (C4): the first in the log at or after a moment, and the latest of all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from headpond.protocol.records.header import HEADER, crc_of, read_header
from headpond.storage.log import timestamps
from headpond.storage.log.timestamps import TURN_READS, WALK_BYTES
from headpond.storage.looks import looks
from simulation.harness.clock import ManualClock
from simulation.harness.workers import SimulatedWorkers
from support.batches import Rec, build
from unit.storage.storage_rig import CONFIG, NOW_MS, Rig, fill, make_batch, read_all


def rows(*deltas: int) -> list[Rec]:
    return [Rec(b"value", timestamp_delta_ms=delta) for delta in deltas]


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd", "snappy"])
def test_the_record_inside_a_batch_is_found(codec: str) -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, build(rows(0, 10, 20), timestamp_ms=NOW_MS, codec=codec), epoch=2)
        await rig.append(log, build(rows(5, 40, 15), timestamp_ms=NOW_MS, codec=codec), epoch=3)
        for timestamp, expected in (
            (0, (NOW_MS, 0, 2)),
            (NOW_MS + 1, (NOW_MS + 10, 1, 2)),
            (NOW_MS + 21, (NOW_MS + 40, 4, 3)),
            (NOW_MS + 41, None),
        ):
            assert await log.offset_for_timestamp(timestamp, up_to_end_offset=6) == expected
        assert await log.max_timestamp(up_to_end_offset=6) == (NOW_MS + 40, 4, 3)
        assert await log.max_timestamp(up_to_end_offset=4) is None
        assert await log.offset_for_timestamp(NOW_MS + 21, up_to_end_offset=4) is None

    asyncio.run(run())


def test_records_before_the_log_start_are_not_found() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, build(rows(0, 10, 20), timestamp_ms=NOW_MS))
        await log.advance_log_start(2)
        found = await log.offset_for_timestamp(0, up_to_end_offset=3)
        assert found is not None and found.offset == 2

    asyncio.run(run())


def test_an_empty_log_has_no_time() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        assert await log.offset_for_timestamp(0, up_to_end_offset=0) is None
        assert await log.max_timestamp(up_to_end_offset=0) is None

    asyncio.run(run())


@pytest.mark.parametrize("restart", [False, True])
def test_timestamps_that_jump_back_and_forth_over_many_segments(restart: bool) -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        stamps = [NOW_MS + (number * 37) % 101 for number in range(60)]
        for number, timestamp in enumerate(stamps):
            await rig.append(log, make_batch(mark=number, timestamp_ms=timestamp))
        if restart:
            await rig.close()
            log = await rig.open()
        for target in range(NOW_MS - 1, NOW_MS + 103):
            found = await log.offset_for_timestamp(target, up_to_end_offset=60)
            expected = next((offset for offset, timestamp in enumerate(stamps) if timestamp >= target), None)
            assert (found.offset if found else None) == expected
        largest = await log.max_timestamp(up_to_end_offset=60)
        assert largest is not None
        assert (largest.timestamp, largest.offset) == (max(stamps), stamps.index(max(stamps)))

    asyncio.run(run())


def lying(batch: bytes, **fields: int) -> bytes:
    """The batch with a header that says something else."""
    data = bytearray(batch)
    HEADER.pack_into(data, 0, *read_header(data)._replace(**fields))
    HEADER.pack_into(data, 0, *read_header(data)._replace(crc=crc_of(data)))
    return bytes(data)


def test_the_largest_timestamp_is_also_that_of_a_deleted_record_as_long_as_its_segment_is_there() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        for delta in (0, 5_000, 1, 2):
            await rig.append(log, make_batch(timestamp_ms=NOW_MS + delta))
        await log.advance_log_start(2)
        assert await log.max_timestamp(up_to_end_offset=4) == (NOW_MS + 5_000, 1, 0)
        assert await log.offset_for_timestamp(NOW_MS + 5_000, up_to_end_offset=4) is None
        await log.advance_log_start(4)
        assert await log.max_timestamp(up_to_end_offset=4) == (NOW_MS + 5_000, 1, 0)
        await log.roll()
        await log.flush()
        assert await rig.manager.delete_old_segments() == 1
        assert await log.max_timestamp(up_to_end_offset=4) is None

    asyncio.run(run())


def test_records_without_a_time_have_the_largest_one_where_no_other_has_any() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(2, timestamp_ms=-1))
        assert await log.max_timestamp(up_to_end_offset=2) == (-1, 0, 0)
        assert await log.offset_for_timestamp(0, up_to_end_offset=2) is None

    asyncio.run(run())


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_header_that_lies_about_the_time_hides_no_other_record(codec: str) -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        batch = build(rows(0, 3, 3), timestamp_ms=NOW_MS, codec=codec)
        await rig.append(log, lying(batch, max_timestamp=NOW_MS + 100))
        assert await log.max_timestamp(up_to_end_offset=3) == (NOW_MS + 3, 1, 0)
        await rig.append(log, make_batch(timestamp_ms=NOW_MS + 60))
        assert await log.offset_for_timestamp(NOW_MS + 50, up_to_end_offset=4) == (NOW_MS + 60, 3, 0)
        assert await log.offset_for_timestamp(NOW_MS + 61, up_to_end_offset=4) is None

    asyncio.run(run())


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_times_that_wrap_around_are_found_where_java_has_them(codec: str) -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        far = build(rows(2**63 - 1, 0, 7, -NOW_MS - 2**62), timestamp_ms=0, codec=codec)
        await rig.append(log, lying(far, base_timestamp=NOW_MS, max_timestamp=NOW_MS + 7))
        assert await log.offset_for_timestamp(0, up_to_end_offset=4) == (NOW_MS, 1, 0)
        assert await log.max_timestamp(up_to_end_offset=4) == (NOW_MS + 7, 2, 0)
        under = build(rows(0, -(2**63)), timestamp_ms=-5, codec=codec)
        await rig.append(log, lying(under, max_timestamp=2**63 - 5))
        assert await log.offset_for_timestamp(NOW_MS + 8, up_to_end_offset=6) == (2**63 - 5, 5, 0)
        assert await log.max_timestamp(up_to_end_offset=6) == (2**63 - 5, 5, 0)
        only = build(rows(2**63 - 1), timestamp_ms=0, codec=codec)
        await rig.append(log, lying(only, base_timestamp=2**63 - 1, max_timestamp=2**63 - 1))
        assert await log.offset_for_timestamp(2**63 - 4, up_to_end_offset=7) is None
        assert await log.max_timestamp(up_to_end_offset=7) is None  # as Kafka, for which it is before all others

    asyncio.run(run())


@pytest.mark.parametrize("limit", ["TURN_RECORDS", "TURN_BYTES"])
def test_a_batch_that_takes_longer_than_a_turn_is_looked_into_by_a_process(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, limit, 10)

    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        batch = build(rows(*range(20)), timestamp_ms=NOW_MS, codec="zstd")
        await rig.append(log, batch)
        await rig.append(log, lying(batch, max_timestamp=NOW_MS + 100))
        await rig.append(log, make_batch(timestamp_ms=NOW_MS + 60))
        assert await log.offset_for_timestamp(NOW_MS + 19, up_to_end_offset=41) == (NOW_MS + 19, 19, 0)
        assert rig.processes.jobs == 1
        assert await log.offset_for_timestamp(NOW_MS + 20, up_to_end_offset=41) == (NOW_MS + 60, 40, 0)
        assert await log.max_timestamp(up_to_end_offset=41) == (NOW_MS + 19, 39, 0)
        assert rig.processes.jobs == 3 + (limit == "TURN_BYTES")

    asyncio.run(run())


def test_a_batch_that_is_larger_inside_than_a_turn_allows_is_looked_into_by_a_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timestamps, "TURN_BYTES", 70_000)

    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        batch = build([Rec(bytes(100_000)), Rec(b"", timestamp_delta_ms=5)], timestamp_ms=NOW_MS, codec="zstd")
        await rig.append(log, batch)
        assert await log.offset_for_timestamp(NOW_MS + 1, up_to_end_offset=2) == (NOW_MS + 5, 1, 0)
        assert rig.processes.jobs == 1

    asyncio.run(run())


def test_a_walk_over_many_headers_is_made_in_turns_off_the_loop() -> None:
    async def run() -> None:
        counting = Counting(ManualClock(NOW_MS))
        rig = Rig(config=msgspec.structs.replace(CONFIG, segment_bytes=1 << 30), lookers=counting)
        log = await rig.open()
        await rig.append(log, make_batch(timestamp_ms=NOW_MS))
        batches = 5 * TURN_READS * WALK_BYTES // (2 * len(make_batch()))
        for _ in range(batches):  # of earlier times: the time index has no entry for them
            await rig.append(log, make_batch(timestamp_ms=NOW_MS - 1_000))
        await rig.append(log, make_batch(timestamp_ms=NOW_MS + 2))
        found = await log.offset_for_timestamp(NOW_MS + 1, up_to_end_offset=log.log_end_offset)
        assert found == (NOW_MS + 2, batches + 1, 0)
        assert counting.jobs == 3

    asyncio.run(run())


class Counting(SimulatedWorkers):
    jobs = 0

    def submit(self, function: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self.jobs += 1
        super().submit(function, done)


class Stuck(SimulatedWorkers):
    def submit(self, function: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        pass


def test_syncs_rolls_and_cold_reads_do_not_wait_for_looks_into_records() -> None:
    async def run() -> None:
        rig = Rig(lookers=Stuck(ManualClock(NOW_MS)))
        log = await rig.open()
        await fill(rig, log, 20)
        searches = [asyncio.ensure_future(log.offset_for_timestamp(NOW_MS + 1, up_to_end_offset=40)) for _ in range(20)]
        await asyncio.sleep(0)
        await fill(rig, log, 20)
        await log.roll()
        await log.flush()
        assert log.flushed_end_offset == 80
        assert len(await read_all(log)) == 40
        assert not any(search.done() for search in searches)
        for search in searches:
            search.cancel()

    asyncio.run(run())
