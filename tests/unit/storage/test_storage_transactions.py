"""Aborted transactions in a log: their index, and what a start makes of index and markers."""

from __future__ import annotations

import asyncio
import random

import pytest

from headpond.protocol.records.control import build_end_txn_marker
from headpond.storage.log.log import PartitionLog
from headpond.storage.producers import txn_index
from headpond.storage.producers.txn_index import BLOCK, AbortedTxn, AbortedTxns, decode_prefix, encode, overlapping
from headpond.storage.recovery.inspection import inspect
from support.batches import Rec, build
from unit.storage.storage_rig import DATA_DIR, NOW_MS, TP, Rig, make_batch

FOLDER = f"{DATA_DIR}/{TP}"
TRANSACTIONAL = 0x10
ENTRIES = [AbortedTxn(7, 10, 20, 21), AbortedTxn(8, 12, 30, 25)]


def test_entries_survive_a_round_trip_and_half_an_entry_is_not_believed() -> None:
    data = encode(ENTRIES)
    assert len(data) == 2 * 34 and data[:2] == b"\0\0"
    assert decode_prefix(data) == ENTRIES
    assert decode_prefix(data[:-1]) == ENTRIES[:1]
    assert decode_prefix(data[:34] + b"\0\1" + data[36:]) == ENTRIES[:1]
    assert decode_prefix(encode(reversed(ENTRIES))) == ENTRIES[1:]


@pytest.mark.parametrize(
    ("from_offset", "end_offset", "found"),
    [(0, 10, ()), (0, 11, ((7, 10),)), (20, 40, ((7, 10), (8, 12))), (21, 40, ((8, 12),)), (31, 40, ())],
)
def test_a_reader_is_told_of_the_transactions_that_overlap_what_it_reads(
    from_offset: int, end_offset: int, found: tuple[tuple[int, int], ...]
) -> None:
    assert overlapping(AbortedTxns(ENTRIES), from_offset=from_offset, up_to_end_offset=end_offset) == found


def test_among_thousands_of_aborted_transactions_a_reader_is_told_of_those_that_overlap_what_it_reads() -> None:
    chance = random.Random(7)
    plain: list[AbortedTxn] = []
    entries = AbortedTxns()
    for number in range(3 * BLOCK):
        end = 10 * number + 9
        long_open = chance.random() < 0.001
        entry = AbortedTxn(number, chance.randrange(end) if long_open else end - chance.randrange(40), end, end + 1)
        plain.append(entry)
        entries.append(entry)
        if number in (BLOCK, 2 * BLOCK):  # retention, a truncation
            del plain[:100], entries[:100]
            del plain[-7:], entries[-7:]
        if number % 50 == 0:
            from_offset = chance.randrange(end + 20)
            end_offset = from_offset + chance.randrange(1, 500)
            found = overlapping(entries, from_offset=from_offset, up_to_end_offset=end_offset)
            assert found == tuple(
                (each.producer_id, each.first_offset)
                for each in plain
                if each.last_offset >= from_offset and each.first_offset < end_offset
            )
    assert entries == plain


def test_a_read_does_not_walk_over_the_aborted_transactions_that_lie_elsewhere() -> None:
    looked_at = 0

    class Entry(AbortedTxn):
        def __getattribute__(self, name: str) -> object:
            nonlocal looked_at
            looked_at += 1
            return super().__getattribute__(name)

    entries = AbortedTxns(Entry(1, 2 * number, 2 * number + 1, 0) for number in range(20 * BLOCK))
    overlapping(entries, from_offset=0, up_to_end_offset=1)
    looked_at = 0
    assert len(overlapping(entries, from_offset=6 * BLOCK, up_to_end_offset=6 * BLOCK + 10)) == 5
    assert looked_at < 2 * BLOCK


async def transact(rig: Rig, log: PartitionLog, *, producer_id: int, epoch: int, is_abort: bool | None) -> None:
    """A batch of a transaction of its own, and its end."""
    rows = [Rec(b"in a transaction")]
    identity = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": 0}
    await rig.append(log, build(rows, attributes=TRANSACTIONAL, timestamp_ms=NOW_MS, **identity))
    if is_abort is not None:
        marker = build_end_txn_marker(
            producer_id=producer_id, producer_epoch=epoch, is_abort=is_abort, coordinator_epoch=0, timestamp=NOW_MS
        )
        await rig.append(log, bytes(marker), flush=True)


@pytest.mark.parametrize("has_index", [True, False])
def test_a_start_knows_what_was_aborted_from_the_index_or_the_markers(has_index: bool) -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await transact(rig, log, producer_id=5, epoch=0, is_abort=True)
        await transact(rig, log, producer_id=5, epoch=1, is_abort=False)
        await transact(rig, log, producer_id=6, epoch=0, is_abort=True)
        right = [AbortedTxn(5, 0, 1, 2), AbortedTxn(6, 4, 5, 6)]
        if has_index:
            await rig.close()  # clean: nothing is scanned
            await rig.in_worker(rig.disk.write_file_atomically, f"{FOLDER}/{0:020d}.txnindex", txn_index.encode(right))
        else:
            await rig.die()
        log = await rig.open()
        assert log.aborted == right

    asyncio.run(run())


def test_inspection_finds_open_transactions_and_the_newest_producer() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await rig.append(log, make_batch(producer_id=90, base_sequence=0))
        await transact(rig, log, producer_id=5, epoch=0, is_abort=True)
        await rig.close()
        found = await rig.in_worker(inspect, rig.disk, FOLDER, TP)
        assert (found.problem, found.end_offset, found.last_producer_id) == (None, 3, 90)
        assert [entry for _, entry in found.aborted] == [AbortedTxn(5, 1, 2, 3)]
        log = await rig.open()
        await transact(rig, log, producer_id=5, epoch=1, is_abort=None)
        await rig.close()
        found = await rig.in_worker(inspect, rig.disk, FOLDER, TP)
        assert found.problem is not None and "open since offset 3" in found.problem

    asyncio.run(run())
