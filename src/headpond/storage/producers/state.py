"""What a partition remembers of one producer, and the form that it has in a snapshot file."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from headpond.protocol.records.header import NO_SEQUENCE
from headpond.storage.producers.snapshot import SnapshotEntry

NO_OFFSET = -1


class StoredBatch(NamedTuple):
    """One batch that a producer has stored; as the result of ``check``: the duplicate's original."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int  # its max timestamp; Kafka answers a duplicate with it as the append time


class CompletedTxn(NamedTuple):
    """A transaction that a marker has just ended: what the transaction index needs if it was aborted."""

    producer_id: int
    first_offset: int
    last_offset: int  # the marker's own
    is_aborted: bool
    last_stable_offset: int


class Verification:
    """A transaction's first batch here waits for the coordinator's word, or has it. Ends with any batch or marker of
    the producer: then there is an open transaction, or the word was about one that is over (KIP-890)."""

    __slots__ = ("epoch", "lowest_sequence", "since_ms", "starts_at_zero")

    def __init__(self, epoch: int, sequence: int, now_ms: int, *, starts_at_zero: bool) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.since_ms = now_ms
        self.starts_at_zero = starts_at_zero

    def seen(self, epoch: int, sequence: int) -> None:
        """A batch that failed must come again before a later one is taken, or it would be out of order for ever."""
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch, self.lowest_sequence = epoch, sequence


class ProducerState(msgspec.Struct, gc=False):
    producer_id: int
    epoch: int
    batches: list[StoredBatch]  # oldest first
    seen_ms: int  # when it last appended, by this broker's clock (see IDLE_ORDER_MS)
    timestamp: int = -1  # of the last batch or marker
    coordinator_epoch: int = -1
    txn_first_offset: int = NO_OFFSET
    packed: bytes = b""  # its entry in a snapshot, kept until it changes; empty: to be made

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


def entry_of(state: ProducerState) -> SnapshotEntry:
    if state.batches:
        _, last_sequence, base_offset, last_offset, _ = state.batches[-1]
    else:
        last_sequence, base_offset, last_offset = NO_SEQUENCE, NO_OFFSET, NO_OFFSET
    return SnapshotEntry(
        state.producer_id,
        state.epoch,
        last_sequence,
        last_offset,
        last_offset - base_offset,
        state.timestamp,
        state.coordinator_epoch,
        state.txn_first_offset,
    )


def state_of(entry: SnapshotEntry, now_ms: int) -> ProducerState:
    batches: list[StoredBatch] = []
    if entry.last_offset >= 0:
        # Counting back from -1 (a batch without sequences: an offset commit) stays -1.
        last_sequence, delta = entry.last_sequence, entry.offset_delta
        base_sequence = NO_SEQUENCE if last_sequence == NO_SEQUENCE else (last_sequence - delta) & 0x7FFFFFFF
        base_offset = entry.last_offset - delta
        batches.append(StoredBatch(base_sequence, last_sequence, base_offset, entry.last_offset, entry.timestamp))
    return ProducerState(
        entry.producer_id,
        entry.epoch,
        batches,
        now_ms,
        entry.timestamp,
        entry.coordinator_epoch,
        max(entry.txn_first_offset, NO_OFFSET),
    )
