"""What one log contributes to a checkpoint round.

Epochs and producer snapshots have to be durable before its recovery point moves; index entries too, but for the last
few, which recovery makes anew. ``begin`` notes everything at one moment, on the loop; a worker writes it
(``segment_files.save``); ``finish`` notes that it is done. If the worker failed, ``abandon`` has the indexes written
from their start next time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.storage import folder as names
from penstock.storage.offset_index import ENTRY_BYTES as INDEX_ENTRY_BYTES
from penstock.storage.segment import Segment
from penstock.storage.segment_files import Housekeeping, Tail
from penstock.storage.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from penstock.storage.txn_index import ENTRY_BYTES as TXN_ENTRY_BYTES
from penstock.storage.txn_index import encode as encode_aborted
from penstock.storage.txn_index import ending_in

if TYPE_CHECKING:
    from penstock.storage.log import PartitionLog

SNAPSHOT_BYTES = 16 * 1024 * 1024
SNAPSHOT_RECORDS = 20_000
"""Recovery replays producers from the newest snapshot: this much at most, unless there are many of them."""
SNAPSHOT_OFTEN_PRODUCERS_MAX = 1_000
"""Encoding more would hold up the loop too often: then only the bytes count."""


INDEX_LAG_BYTES = 64 * 1024
"""The growing segment's indexes are written when they lack the entries of this much: recovery makes the last ones anew
from the log. With hundreds of busy partitions their files would be opened and closed all the time, and each such call
stops the loop for a moment."""


class LogCheckpoint(NamedTuple):
    log: PartitionLog
    end_offset: int  # the recovery point that this makes possible, once it is flushed
    truncations: int
    work: Housekeeping
    entries: list[tuple[Segment, int, int, int]]
    epochs_version: int
    bytes_since_snapshot: int


def begin(log: PartitionLog, *, closing: bool = False) -> LogCheckpoint:
    if log.active is not None and log.active not in log.unsaved:
        log.unsaved.append(log.active)
    if closing:
        for segment in log.unsaved:
            segment.finish_time_index()
    log.bytes_since_snapshot += log.bytes_since_checkpoint
    log.leave_to_recovery(log.bytes_before_checkpoint + log.bytes_since_checkpoint)
    log.bytes_since_checkpoint = 0
    if (closing and log.active is not None) or _snapshot_is_due(log):
        take_snapshot(log)
    tails: list[Tail] = []
    entries: list[tuple[Segment, int, int, int]] = []
    for segment in log.unsaved:
        if segment is log.active and not closing and _lacks_few(log, segment):
            continue
        tails += _tails(log, segment)
        entries.append((segment, len(segment.index or ()), len(segment.time_index or ()), _aborted_count(log, segment)))
    work = Housekeeping(
        log.path,
        tails,
        log.epochs.encode() if log.epochs.version != log.epochs_written else None,
        list(log.snapshots_due),
        frozenset(log.segments.base_offsets),
    )
    return LogCheckpoint(
        log, log.log_end_offset, log.truncations, work, entries, log.epochs.version, log.bytes_since_snapshot
    )


def finish(checkpoint: LogCheckpoint) -> bool:
    """It is all on disk. False: the log was truncated meanwhile, and the recovery point must not move."""
    log = checkpoint.log
    if log.truncations != checkpoint.truncations or log.is_being_cut:
        return False
    log.leave_to_recovery(checkpoint.bytes_since_snapshot)
    for segment, index_entries, time_entries, txn_entries in checkpoint.entries:
        segment.index_entries_written, segment.time_entries_written = index_entries, time_entries
        segment.txn_entries_written = txn_entries
    log.unsaved = [segment for segment in log.unsaved if segment is log.active or _tails(log, segment)]
    log.epochs_written = checkpoint.epochs_version
    del log.snapshots_due[: len(checkpoint.work.snapshots)]
    return True


def abandon(checkpoint: LogCheckpoint) -> None:
    # What a transaction index held before stays as it is: there is no other way to it than this file.
    for segment, _, _, _ in checkpoint.entries:
        segment.index_entries_written = segment.time_entries_written = -1


def _snapshot_is_due(log: PartitionLog) -> bool:
    if log.bytes_since_snapshot >= SNAPSHOT_BYTES:
        return True
    many_records = log.log_end_offset - log.snapshot_end_offset >= SNAPSHOT_RECORDS
    return many_records and len(log.producers) <= SNAPSHOT_OFTEN_PRODUCERS_MAX


def take_snapshot(log: PartitionLog) -> None:
    """Note the producers as of the log's end; written by the next checkpoint round."""
    log.snapshots_due.append((log.log_end_offset, log.producers.snapshot()))
    log.bytes_since_snapshot = 0
    log.snapshot_end_offset = log.log_end_offset


def _aborted_count(log: PartitionLog, segment: Segment) -> int:
    return len(ending_in(log.aborted, segment.base_offset, segment.end_offset)) if log.aborted else 0


def _lacks_few(log: PartitionLog, segment: Segment) -> bool:
    """Not worth opening its files. A transaction index is: nothing makes its entries anew below the recovery point."""
    written = segment.index_entries_written
    if segment.index is None or written < 0 or segment.time_entries_written < 0:
        return False
    last_position = segment.index.positions[written - 1] if written else 0
    return (
        segment.size_bytes - last_position < INDEX_LAG_BYTES
        and _aborted_count(log, segment) == segment.txn_entries_written
    )


def _tails(log: PartitionLog, segment: Segment) -> list[Tail]:
    """Entries that the files lack. A file that does not exist yet is written even if it will be empty, except for the
    transaction index."""
    tails: list[Tail] = []
    if segment.index is not None and len(segment.index) > segment.index_entries_written:
        written = max(0, segment.index_entries_written)
        name = names.file_name(segment.base_offset, names.INDEX)
        tails.append(Tail(name, written * INDEX_ENTRY_BYTES, segment.index.encode(written)))
    if segment.time_index is not None and len(segment.time_index) > segment.time_entries_written:
        written = max(0, segment.time_entries_written)
        name = names.file_name(segment.base_offset, names.TIME_INDEX)
        tails.append(Tail(name, written * TIME_ENTRY_BYTES, segment.time_index.encode(written)))
    if log.aborted:
        own, written = ending_in(log.aborted, segment.base_offset, segment.end_offset), segment.txn_entries_written
        if len(own) > written:
            name = names.file_name(segment.base_offset, names.TXN_INDEX)
            new = log.aborted[own.start + written : own.stop]
            tails.append(Tail(name, written * TXN_ENTRY_BYTES, encode_aborted(new)))
    return tails
