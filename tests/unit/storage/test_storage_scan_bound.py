"""What recovery has to read of a log is bounded, however fast it is written and however slow its checkpoints are."""

from __future__ import annotations

import asyncio

import pytest

from headpond.model import StorageFailed
from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.log import log as log_module
from headpond.storage.log.log import PartitionLog
from headpond.storage.recovery import index_files
from unit.storage.storage_rig import CONFIG, NOW_MS, Rig, make_batch

SCAN_MAX = 3_000
SNAPSHOT = 1_000
BATCH = len(make_batch())
STEP = 2 * BATCH + CONFIG.index_interval_bytes
"""Of the index, at most: reading begins at an entry."""
MOST = SCAN_MAX + BATCH + STEP


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "SCAN_BYTES_MAX", SCAN_MAX)
    monkeypatch.setattr(log_module, "CHECKPOINT_BYTES", SNAPSHOT)
    monkeypatch.setattr(log_checkpoint, "SNAPSHOT_BYTES", SNAPSHOT)
    monkeypatch.setattr(index_files, "INDEX_LAG_BYTES", 1)


def one_large_segment() -> Rig:
    rig = Rig()
    rig.reconfigure(segment_bytes=1 << 20)
    return rig


async def append_without_a_pause(rig: Rig, log: PartitionLog) -> int:
    """As many batches as find room while the loop does nothing else; returns their bytes."""
    batch, before = make_batch(), log.size_bytes
    while log.can_append(BATCH, NOW_MS, NOW_MS):
        await rig.append(log, batch)
    return log.size_bytes - before


def test_appends_that_are_faster_than_the_checkpoints_wait_for_them() -> None:
    async def run() -> None:
        rig = one_large_segment()
        log = await rig.open()
        await rig.append(log, make_batch())
        for _ in range(5):
            await append_without_a_pause(rig, log)
            assert log.bytes_before_checkpoint + log.bytes_since_checkpoint < SCAN_MAX + BATCH
            await rig.append(log, make_batch())  # makes room first
        assert log.size_bytes > 3 * SCAN_MAX
        await append_without_a_pause(rig, log)
        await rig.die()
        log = await rig.open()
        assert SNAPSHOT < rig.manager.scanned_bytes <= MOST

    asyncio.run(run())


def test_one_crash_after_the_other_does_not_add_up() -> None:
    async def run() -> None:
        rig = one_large_segment()
        log = await rig.open()
        await rig.append(log, make_batch())
        for _ in range(4):
            await append_without_a_pause(rig, log)
            await rig.die()
            log = await rig.open()
            assert rig.manager.scanned_bytes <= MOST
        await rig.append(log, make_batch())
        assert log.recovery_point > 0

    asyncio.run(run())


def test_what_lies_between_the_last_snapshot_and_the_checkpoint_counts_too() -> None:
    async def run() -> None:
        rig = one_large_segment()
        log = await rig.open()
        while log.size_bytes < SNAPSHOT - BATCH:
            await rig.append(log, make_batch())
        await rig.checkpoint()
        assert log.recovery_point == log.log_end_offset
        await append_without_a_pause(rig, log)
        await rig.die()
        await rig.open()
        assert SNAPSHOT < rig.manager.scanned_bytes <= MOST

    asyncio.run(run())


def test_the_first_checkpoint_after_a_crash_has_a_snapshot_if_the_last_one_is_far_behind() -> None:
    async def run() -> None:
        rig = one_large_segment()
        log = await rig.open()
        await rig.append(log, make_batch())
        await append_without_a_pause(rig, log)
        await rig.die()
        await rig.open()
        assert rig.manager.scanned_bytes > SNAPSHOT
        await rig.checkpoint()
        await rig.die()
        await rig.open()
        assert rig.manager.scanned_bytes <= STEP

    asyncio.run(run())


def test_a_batch_larger_than_the_bound_has_room_and_the_next_one_waits() -> None:
    async def run() -> None:
        rig = one_large_segment()
        log = await rig.open()
        for _ in range(3):
            before = log.log_end_offset
            await rig.append(log, make_batch(value_bytes=2 * SCAN_MAX), flush=True)
            assert log.recovery_point == before
        assert not log.can_append(1, NOW_MS, NOW_MS)

    asyncio.run(run())


def test_room_is_asked_for_batches_of_any_size_and_checkpoints_are_as_seldom() -> None:
    """As coordinators ask, who do not know yet how large their batch will be."""

    async def run() -> None:
        rig = one_large_segment()
        log = await rig.open()
        await rig.append(log, make_batch())
        for _ in range(5):
            await rig.append(log, make_batch())
            assert log.can_append(2 * SCAN_MAX, NOW_MS, NOW_MS)
        assert log.recovery_point == 0

    asyncio.run(run())


def test_where_checkpoints_fail_appends_are_refused_until_one_works() -> None:
    async def run() -> None:
        rig = one_large_segment()
        log = await rig.open()
        await rig.append(log, make_batch(), flush=True)
        await append_without_a_pause(rig, log)
        await log.flush()
        rig.disk.faults.space_bytes = 5
        for _ in range(2):
            with pytest.raises(StorageFailed, match="checkpoint of orders-0 could not be written"):
                await rig.append(log, make_batch())
        rig.disk.faults.heal()
        before = log.log_end_offset
        await rig.append(log, make_batch(), flush=True)
        assert log.recovery_point == before

    asyncio.run(run())


def test_whoever_waits_for_a_checkpoint_is_told_when_the_log_is_closed() -> None:
    async def run() -> None:
        rig = one_large_segment()
        log = await rig.open()
        await rig.append(log, make_batch())
        await append_without_a_pause(rig, log)
        waiting = asyncio.ensure_future(log.make_room(BATCH, NOW_MS, NOW_MS))
        await asyncio.sleep(0)
        await rig.manager.close()
        with pytest.raises(StorageFailed, match="closed"):
            await asyncio.wait_for(waiting, timeout=30)

    asyncio.run(run())
