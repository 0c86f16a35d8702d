"""Finding records by time (C4): the first in the log at or after a moment, and the latest of all."""

from __future__ import annotations

import asyncio

import pytest

from support.batches import Rec, build
from unit.storage.storage_rig import NOW_MS, Rig, make_batch


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
