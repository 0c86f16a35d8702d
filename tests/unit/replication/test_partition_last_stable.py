"""The last stable offset when an open transaction began below the log's start: it is never below that."""

from __future__ import annotations

import asyncio

from headpond.replication.partition import Partition
from headpond.storage.log.log import PartitionLog
from support.batches import Rec, build
from unit.storage.storage_rig import CONFIG, NOW_MS, Rig, make_batch

TRANSACTIONAL = 0x10


def partition_of(rig: Rig, log: PartitionLog) -> Partition:
    return rig.partition(log)


async def begin(rig: Rig) -> Partition:
    """Four records, one of a transaction that stays open, six more; all of them visible."""
    log = await rig.open()
    partition = partition_of(rig, log)
    await rig.append(log, make_batch(4))
    opened = build(
        [Rec(b"x")],
        attributes=TRANSACTIONAL,
        timestamp_ms=NOW_MS,
        producer_id=5,
        producer_epoch=0,
        base_sequence=0,
    )
    await rig.append(log, opened)
    for _ in range(6):
        await rig.append(log, make_batch(1, value_bytes=200))
    await log.flush()
    assert (partition.last_stable_offset, partition.high_watermark) == (4, 11)
    return partition


def check(partition: Partition, log_start_offset: int) -> None:
    assert partition.log.log_start_offset == log_start_offset
    assert partition.last_stable_offset == log_start_offset
    assert partition.stable_end_offset_when_flushed == log_start_offset


def test_deleted_records_of_an_open_transaction_do_not_hold_the_last_stable_offset_below_the_start() -> None:
    async def run() -> None:
        rig = Rig()
        partition = await begin(rig)
        await partition.log.advance_log_start(3)
        assert partition.last_stable_offset == partition.stable_end_offset_when_flushed == 4
        await partition.log.advance_log_start(7)
        check(partition, 7)
        await rig.append(partition.log, make_batch(1), flush=True)
        check(partition, 7)  # the transaction is still open
        await partition.log.advance_log_start(12)
        check(partition, 12)

    asyncio.run(run())


def test_nor_does_what_retention_removed() -> None:
    async def run() -> None:
        rig = Rig()
        partition = await begin(rig)
        rig.reconfigure(retention_bytes=CONFIG.segment_bytes)
        assert await rig.manager.delete_old_segments() > 0
        assert partition.log.log_start_offset > 4
        check(partition, partition.log.log_start_offset)

    asyncio.run(run())


def test_nor_after_a_restart() -> None:
    async def run() -> None:
        rig = Rig()
        partition = await begin(rig)
        await partition.log.advance_log_start(7)
        await rig.close()
        check(partition_of(rig, await rig.open()), 7)

    asyncio.run(run())


def test_nor_after_a_crash_which_forgets_a_transaction_whose_records_are_all_gone() -> None:
    async def run() -> None:
        rig = Rig()
        partition = await begin(rig)
        await partition.log.advance_log_start(7)
        await rig.die()
        partition = partition_of(rig, await rig.open())
        assert (partition.log.log_start_offset, partition.last_stable_offset) == (7, 11)

    asyncio.run(run())
