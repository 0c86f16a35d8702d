"""The index of aborted transactions through the life of a log: rolls, starts, truncation, retention, damage."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headpond.protocol.records.control import build_end_txn_marker
from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.log.log import PartitionLog
from headpond.storage.producers.txn_index import AbortedTxn, decode_prefix, encode
from simulation.harness.disk import SimulatedDisk
from support.batches import Rec, build
from unit.storage.storage_rig import DATA_DIR, NOW_MS, TP, Rig, make_batch

FOLDER = f"{DATA_DIR}/{TP}"
TRANSACTIONAL = 0x10


class Writer:
    """Transactions on one log: producer ``p`` begins with ``begin(p)`` and ends with ``end(p, ...)``."""

    def __init__(self, rig: Rig, log: PartitionLog) -> None:
        self.rig, self.log = rig, log
        self.sequences: dict[int, int] = {}

    async def begin(self, producer_id: int, *, count: int = 1) -> int:
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + count
        batch = build(
            [Rec(b"in a transaction")] * count,
            attributes=TRANSACTIONAL,
            timestamp_ms=NOW_MS,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        return (await self.rig.append(self.log, batch, flush=True)).base_offset

    async def end(self, producer_id: int, *, is_abort: bool = True) -> int:
        marker = build_end_txn_marker(
            producer_id=producer_id, producer_epoch=0, is_abort=is_abort, coordinator_epoch=0, timestamp=NOW_MS
        )
        return (await self.rig.append(self.log, bytes(marker), flush=True)).base_offset

    async def indexed(self, base_offset: int) -> list[AbortedTxn] | None:
        """What the segment's file holds; None: there is no file."""
        path = f"{FOLDER}/{base_offset:020d}.txnindex"
        if not await self.rig.in_worker(self.rig.disk.exists, path):
            return None
        return decode_prefix(await self.rig.in_worker(self.rig.disk.read_file, path))


def run(test: Callable[[Rig, Writer], Awaitable[None]]) -> None:
    async def start() -> None:
        rig = Rig()
        await test(rig, Writer(rig, await rig.open()))
        await rig.tasks.cancel_all()

    asyncio.run(start())


def test_an_abort_is_known_at_once_and_a_commit_is_not_listed() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.begin(5)
        await writer.begin(6)
        await writer.end(5)
        await writer.end(6, is_abort=False)
        assert writer.log.aborted == [AbortedTxn(5, 0, 2, 1)]

    run(test)


def test_a_marker_without_records_before_it_is_not_listed() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.end(5)
        assert writer.log.aborted == []

    run(test)


def test_each_segment_has_the_index_of_what_ends_in_it_and_none_without() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await rig.append(writer.log, make_batch())
        await writer.log.roll()
        await writer.begin(5)
        await writer.begin(6)
        await writer.end(5)
        await rig.checkpoint()
        assert await writer.indexed(1) == [AbortedTxn(5, 1, 3, 2)]
        await writer.begin(7)
        await writer.log.roll()
        await writer.end(6)
        await writer.end(7)
        await rig.checkpoint()
        assert await writer.indexed(0) is None
        assert await writer.indexed(1) == [AbortedTxn(5, 1, 3, 2)]
        assert await writer.indexed(5) == [AbortedTxn(6, 2, 5, 4), AbortedTxn(7, 4, 6, 7)]

    run(test)


def test_entries_are_added_to_the_file_by_later_checkpoints() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        for _ in range(4):
            await writer.begin(5)
            await writer.end(5)
            await rig.checkpoint()
        assert await writer.indexed(0) == writer.log.aborted and len(writer.log.aborted) == 4

    run(test)


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_start_finds_open_and_ended_transactions(is_clean: bool, checkpoints: bool) -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.begin(5)
        await writer.end(5)
        await writer.begin(6)
        await writer.log.roll()
        if checkpoints:
            await rig.checkpoint()
        await writer.end(6)
        await writer.begin(7)
        await writer.begin(5)
        await writer.end(5, is_abort=False)
        before = list(writer.log.aborted)
        await (rig.close() if is_clean else rig.die())
        log = await rig.open()
        assert log.aborted == before == [AbortedTxn(5, 0, 1, 2), AbortedTxn(6, 2, 3, 4)]
        log.producers.on_high_watermark(log.log_end_offset)
        assert log.producers.first_unstable_offset == 4
        assert log.producers.is_open(7, 0) and not log.producers.is_open(5, 0)
        writer.log = log
        await writer.end(7)
        log.producers.on_high_watermark(log.log_end_offset)
        assert log.producers.first_unstable_offset is None
        await rig.checkpoint()
        assert await writer.indexed(0) == [AbortedTxn(5, 0, 1, 2)]
        assert await writer.indexed(3) == [AbortedTxn(6, 2, 3, 4), AbortedTxn(7, 4, 7, 8)]

    run(test)


def test_a_truncated_abort_is_forgotten_even_when_other_records_take_its_offsets() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.begin(5)
        await writer.end(5)
        await writer.begin(6)
        await writer.end(6)
        await rig.checkpoint()
        assert len(await writer.indexed(0) or ()) == 2
        await writer.log.truncate_to(3)
        assert writer.log.aborted == await writer.indexed(0) == [AbortedTxn(5, 0, 1, 2)]
        assert writer.log.producers.is_open(6, 0)
        await writer.end(6, is_abort=False)  # the other outcome, at the offset of the first
        await rig.checkpoint()
        await rig.die()
        log = await rig.open()
        assert log.aborted == [AbortedTxn(5, 0, 1, 2)]

    run(test)


def test_a_truncation_to_before_every_abort_leaves_no_index() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await rig.append(writer.log, make_batch())
        await writer.begin(5)
        await writer.end(5)
        await rig.checkpoint()
        await writer.log.truncate_to(1)
        assert writer.log.aborted == [] and await writer.indexed(0) is None
        await rig.append(writer.log, make_batch(3), flush=True)
        await rig.die()
        assert (await rig.open()).aborted == []

    run(test)


def test_a_log_that_starts_anew_has_aborted_nothing() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.begin(5)
        await writer.end(5)
        await rig.checkpoint()
        await writer.log.restart_at(100)
        assert writer.log.aborted == []
        await rig.die()
        assert (await rig.open()).aborted == []

    run(test)


def test_deleted_segments_take_their_aborted_transactions_along() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.begin(5)
        await writer.end(5)
        await writer.begin(6)
        await writer.log.roll()
        await writer.end(6)
        await rig.checkpoint()
        await writer.log.advance_log_start(3)
        assert await writer.log.delete_old_segments(NOW_MS) == 1
        assert writer.log.aborted == [AbortedTxn(6, 2, 3, 4)]
        await writer.begin(5)
        await writer.end(5)
        await rig.checkpoint()
        assert await writer.indexed(3) == writer.log.aborted == [AbortedTxn(6, 2, 3, 4), AbortedTxn(5, 4, 5, 6)]

    run(test)


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("damage", [b"\0", b"\0\1", encode([AbortedTxn(5, 9, 1, 2)])])
def test_a_damaged_index_is_made_anew_from_the_markers(damage: bytes, is_clean: bool) -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        for _ in range(3):
            await writer.begin(5)
            await writer.end(5)
            await writer.log.roll()
        before = list(writer.log.aborted)
        await rig.checkpoint()
        await (rig.close() if is_clean else rig.die())
        await rig.in_worker(rig.disk.write_file_atomically, f"{FOLDER}/{2:020d}.txnindex", damage)
        log = await rig.open()
        assert log.aborted == before and len(before) == 3
        assert await writer.indexed(2) == [before[1]]

    run(test)


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("bases", [[0], [2], [0, 2, 4]])
def test_where_all_indexes_of_a_segment_are_gone_aborted_records_stay_so(bases: list[int], is_clean: bool) -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        for _ in range(3):
            await writer.begin(5)
            await writer.end(5)
            if writer.log.log_end_offset < 6:
                await writer.log.roll()
        before = list(writer.log.aborted)
        await rig.checkpoint()
        await (rig.close() if is_clean else rig.die())
        for base in bases:
            for suffix in (".index", ".timeindex", ".txnindex"):
                await rig.in_worker(rig.disk.remove, f"{FOLDER}/{base:020d}{suffix}")
        log = await rig.open()
        assert log.aborted == before and len(before) == 3
        assert [await writer.indexed(base) for base in (0, 2, 4)] == [[each] for each in before]

    run(test)


def test_producers_are_known_at_the_second_start_after_a_damaged_index_too() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.begin(5)
        await writer.end(5)
        await writer.log.roll()
        await writer.begin(7)
        await rig.close()
        path = f"{FOLDER}/{0:020d}.txnindex"
        data = await rig.in_worker(rig.disk.read_file, path)
        await rig.in_worker(rig.disk.write_file_atomically, path, data[:-1])
        for _ in range(3):
            log = await rig.open()
            assert sorted(state.producer_id for state in log.producers.states()) == [5, 7]
            assert log.producers.first_undecided_offset == 2
            await rig.close()

    run(test)


def test_what_a_torn_checkpoint_left_in_the_index_is_not_believed() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.begin(5)
        await writer.end(5)
        await rig.die()
        # The index got further than the log, whose last records were lost.
        lost = encode([AbortedTxn(5, 0, 1, 2), AbortedTxn(6, 2, 7, 8)])
        await rig.in_worker(rig.disk.write_file_atomically, f"{FOLDER}/{0:020d}.txnindex", lost)
        log = writer.log = await rig.open()
        assert log.aborted == await writer.indexed(0) == [AbortedTxn(5, 0, 1, 2)]
        await rig.append(log, make_batch(20), flush=True)
        await rig.checkpoint()
        await rig.die()
        assert (await rig.open()).aborted == [AbortedTxn(5, 0, 1, 2)]

    run(test)


def test_an_index_that_was_only_in_memory_when_the_process_was_killed_survives_a_later_power_cut() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.begin(5)
        await writer.end(5)
        await rig.die()
        path = f"{FOLDER}/{0:020d}.txnindex"
        file = await rig.in_worker(lambda: rig.disk.open(path, create=True))
        file.write(encode([AbortedTxn(5, 0, 1, 2)]))  # the checkpoint had written it, and not yet synced
        log = await rig.open()
        await log.roll()  # which takes a snapshot: behind it no marker is read again
        await rig.append(log, make_batch(), flush=True)
        await rig.checkpoint()
        await rig.die()
        survivor = Rig(SimulatedDisk(rig.disk.durable_image()))
        assert (await survivor.open()).aborted == [AbortedTxn(5, 0, 1, 2)]
        await survivor.tasks.cancel_all()

    run(test)


def test_a_failed_checkpoint_does_not_cost_the_entries_that_were_there() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        await writer.begin(5)
        await writer.end(5)
        await rig.checkpoint()
        await writer.begin(5)
        await writer.end(5)
        log_checkpoint.abandon(log_checkpoint.begin(writer.log), OSError("no space"))
        await rig.append(writer.log, make_batch(), flush=True)
        await rig.checkpoint()
        assert await writer.indexed(0) == writer.log.aborted and len(writer.log.aborted) == 2

    run(test)


def test_small_segments_hold_a_transaction_that_spans_many_of_them() -> None:
    async def test(rig: Rig, writer: Writer) -> None:
        rig.reconfigure(segment_bytes=200)
        for _ in range(8):
            await writer.begin(5)
        end = await writer.end(5)
        assert len(writer.log.segments) > 3
        await rig.checkpoint()
        await rig.die()
        log = await rig.open()
        assert log.aborted == [AbortedTxn(5, 0, end, end + 1)]

    run(test)
