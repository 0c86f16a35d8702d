"""Retention: whole segments, from the oldest on, and never what is not committed."""

from __future__ import annotations

import asyncio

from headpond.storage.log.log import PartitionLog
from simulation.harness.turns import settle
from unit.storage.storage_rig import DATA_DIR, NOW_MS, TP, Rig, make_batch, read_all

FOLDER = f"{DATA_DIR}/{TP}"


async def three_segments(rig: Rig, log: PartitionLog) -> None:
    """Ten batches each, an hour between the segments, all flushed."""
    for number in range(3):
        for _ in range(10):
            await rig.append(log, make_batch(timestamp_ms=NOW_MS + number * 3_600_000))
        if number < 2:
            await log.roll()
    await log.flush()


def rig_for_retention() -> Rig:
    rig = Rig()
    rig.reconfigure(segment_bytes=1 << 20)
    return rig


def test_segments_go_when_their_newest_record_is_too_old() -> None:
    async def run() -> None:
        rig = rig_for_retention()
        log = await rig.open()
        await three_segments(rig, log)
        rig.reconfigure(retention_ms=3_600_000)
        assert await log.delete_old_segments(NOW_MS + 3_600_000) == 0
        moved: list[int] = []
        log.on_log_start = moved.append
        assert await log.delete_old_segments(NOW_MS + 3_600_001) == 1
        assert (log.log_start_offset, moved) == (10, [10])
        assert len(await read_all(log)) == 20

    asyncio.run(run())


def test_an_expired_active_segment_is_rolled_and_goes_too() -> None:
    async def run() -> None:
        rig = rig_for_retention()
        log = await rig.open()
        await three_segments(rig, log)
        rig.reconfigure(retention_ms=1_000)
        assert await log.delete_old_segments(NOW_MS + 100 * 3_600_000) == 3
        assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (30, 30, 0)
        assert await log.delete_old_segments(NOW_MS + 100 * 3_600_000) == 0  # an empty segment stays
        assert (await rig.append(log, make_batch())).base_offset == 30

    asyncio.run(run())


def test_the_log_is_kept_at_least_as_large_as_retention_bytes() -> None:
    async def run() -> None:
        rig = rig_for_retention()
        log = await rig.open()
        await three_segments(rig, log)
        size = log.size_bytes // 3
        rig.reconfigure(retention_bytes=2 * size + 1)
        assert await log.delete_old_segments(NOW_MS) == 0
        rig.reconfigure(retention_bytes=2 * size)
        assert await log.delete_old_segments(NOW_MS) == 1
        assert log.size_bytes == 2 * size

    asyncio.run(run())


def test_nothing_goes_that_is_not_committed() -> None:
    async def run() -> None:
        rig = rig_for_retention()
        log = await rig.open()
        await three_segments(rig, log)
        rig.reconfigure(retention_bytes=0)
        log.committed_end_offset = lambda: 15
        assert await log.delete_old_segments(NOW_MS) == 1
        assert log.log_start_offset == 10

    asyncio.run(run())


def test_without_the_policy_delete_only_deleted_records_go() -> None:
    async def run() -> None:
        rig = rig_for_retention()
        log = await rig.open()
        await three_segments(rig, log)
        rig.reconfigure(deletes=False, retention_bytes=0, retention_ms=1)
        assert await log.delete_old_segments(NOW_MS + 10**12) == 0
        await log.advance_log_start(15)
        assert await log.delete_old_segments(NOW_MS + 10**12) == 1
        assert log.log_start_offset == 15
        assert [batch.base_offset for batch in await read_all(log)] == list(range(15, 30))

    asyncio.run(run())


def test_deleted_files_are_renamed_first_and_removed_after_the_delay() -> None:
    async def run() -> None:
        rig = rig_for_retention()
        log = await rig.open()
        await three_segments(rig, log)
        await rig.checkpoint()
        rig.reconfigure(retention_bytes=log.size_bytes // 3 * 2)
        await log.delete_old_segments(NOW_MS)
        names = await rig.files(FOLDER)
        assert f"{0:020d}.log.deleted" in names and f"{0:020d}.index.deleted" in names
        assert f"{0:020d}.log" not in names
        rig.clock.advance(1.0)
        await asyncio.sleep(0)
        assert not [name for name in await rig.files(FOLDER) if name.endswith(".deleted")]

    asyncio.run(run())


def test_deleted_records_stay_deleted_after_a_crash() -> None:
    async def run() -> None:
        rig = rig_for_retention()
        log = await rig.open()
        await three_segments(rig, log)
        await log.advance_log_start(12)
        assert rig.disk.contents(f"{DATA_DIR}/log-start-offset-checkpoint") == b"0\n1\norders 0 12\n"
        await rig.die()
        log = await rig.open()
        assert log.log_start_offset == 12

    asyncio.run(run())


def test_age_is_known_after_a_restart_too() -> None:
    async def run() -> None:
        rig = rig_for_retention()
        log = await rig.open()
        await three_segments(rig, log)
        await rig.close()
        rig.reconfigure(retention_ms=3_600_000)
        log = await rig.open()
        assert await log.delete_old_segments(NOW_MS + 3_600_001) == 1

    asyncio.run(run())


def test_the_manager_applies_retention_by_itself() -> None:
    async def run() -> None:
        rig = rig_for_retention()
        log = await rig.open()
        await three_segments(rig, log)
        rig.reconfigure(retention_bytes=0)
        await asyncio.sleep(0)
        rig.clock.advance(rig.storage.first_task_delay_ms / 1_000)
        await settle(30)
        assert log.log_start_offset == 30

    asyncio.run(run())
