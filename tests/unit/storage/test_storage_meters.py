"""What storage counts as it works: syncs and what they made durable, retention."""

from __future__ import annotations

import asyncio

import msgspec

from headpond.model import TopicId, TopicPartition
from headpond.storage.commit.group_commit import SYNC_ALL_FROM_LOGS
from unit.storage.storage_rig import CONFIG, NOW_MS, Rig, make_batch


def test_a_sync_is_timed_and_tells_how_much_it_made_durable() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(3))
        await rig.append(log, make_batch(2))
        await log.flush()
        meters = rig.manager.meters
        assert (meters.fdatasync.count, meters.syncfs.count) == (1, 0)
        assert (meters.commit_logs.sum, meters.commit_records.sum) == (1, 5)
        await rig.manager.close()

    asyncio.run(run())


def test_many_dirty_logs_share_one_syncfs() -> None:
    async def run() -> None:
        known = {TopicPartition("orders", index): TopicId(bytes([index]) * 16) for index in range(SYNC_ALL_FROM_LOGS)}
        rig = Rig(known=known)
        await rig.open()
        logs = rig.manager.all()
        for log in logs:
            await rig.append(log, make_batch(1))
        await asyncio.gather(*(log.flush() for log in logs))
        meters = rig.manager.meters
        assert meters.syncfs.count >= 1
        assert meters.commit_logs.sum == meters.commit_records.sum == len(logs)
        await rig.manager.close()

    asyncio.run(run())


def test_retention_counts_its_rounds_and_what_it_deletes() -> None:
    async def run() -> None:
        rig = Rig(config=msgspec.structs.replace(CONFIG, retention_ms=1_000))
        log = await rig.open()
        for _ in range(3):
            await rig.append(log, make_batch(5), flush=True)
            await log.roll()
        size_bytes = log.size_bytes
        rig.clock.now_ms = lambda: NOW_MS + 3_600_000  # type: ignore[method-assign]
        assert await rig.manager.delete_old_segments() == 3
        meters = rig.manager.meters
        assert (meters.retention_runs, meters.retention_segments) == (1, 3)
        assert meters.retention_bytes == size_bytes
        assert await rig.manager.delete_old_segments() == 0
        assert (meters.retention_runs, meters.retention_segments) == (2, 3)
        await rig.manager.close()

    asyncio.run(run())
