"""What one log contributes to a checkpoint round.

Epochs and producer snapshots have to be durable before its recovery point moves; index entries too, but for the last
few, which recovery makes anew. ``begin`` notes everything at one moment, on the loop; a worker writes it
(``segment_files.save``); ``finish`` notes that it is done. If the worker failed, ``abandon`` has what it may have left
cut off next time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headpond.storage.folder import names
from headpond.storage.log.offset_index import ENTRY_BYTES as INDEX_ENTRY_BYTES
from headpond.storage.log.offset_index import OffsetIndex
from headpond.storage.log.segment import Segment
from headpond.storage.log.segment_files import WHOLE, FileShrunk, Housekeeping, Tail
from headpond.storage.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from headpond.storage.producers.txn_index import ENTRY_BYTES as TXN_ENTRY_BYTES
from headpond.storage.producers.txn_index import encode as encode_aborted
from headpond.storage.producers.txn_index import ending_in
from headpond.storage.recovery import index_files

if TYPE_CHECKING:
    from headpond.storage.log.log import PartitionLog

SNAPSHOT_BYTES = 16 * 1024 * 1024
SNAPSHOT_RECORDS = 20_000
"""Recovery replays producers from the newest snapshot: this much at most, unless there are many of them."""
SNAPSHOT_OFTEN_PRODUCERS_MAX = 1_000
"""Encoding more would hold up the loop too often: then only the bytes count."""


class Noted(NamedTuple):
    """Entries of a segment's indexes that this checkpoint writes, if its files lack any."""

    segment: Segment
    offset_index: OffsetIndex | None
    index_entries: int
    time_entries: int
    txn_entries: int


class LogCheckpoint(NamedTuple):
    log: PartitionLog
    end_offset: int  # the recovery point that this makes possible, once it is flushed
    truncations: int
    work: Housekeeping
    noted: list[Noted]
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
    noted: list[Noted] = []
    for segment in log.unsaved:
        if segment is log.active and not closing and _lacks_few(log, segment):
            continue
        tails += _tails(log, segment)
        entries = len(segment.index or ()), len(segment.time_index or ()), _aborted_count(log, segment)
        noted.append(Noted(segment, segment.index, *entries))
    work = Housekeeping(
        log.path,
        tails,
        log.epochs.encode() if log.epochs.version != log.epochs_written else None,
        list(log.snapshots_due),
        frozenset(log.segments.base_offsets),
    )
    return LogCheckpoint(
        log, log.log_end_offset, log.truncations, work, noted, log.epochs.version, log.bytes_since_snapshot
    )


def finish(checkpoint: LogCheckpoint) -> bool:
    """It is all on disk. False: the log was truncated meanwhile, and the recovery point must not move."""
    log = checkpoint.log
    if log.truncations != checkpoint.truncations or log.is_being_cut:
        return False
    log.leave_to_recovery(checkpoint.bytes_since_snapshot)
    for segment, index, index_entries, time_entries, txn_entries in checkpoint.noted:
        segment.txn_entries_written = txn_entries
        if segment.index is index:  # else it was made anew meanwhile
            segment.index_entries_written, segment.time_entries_written = index_entries, time_entries
            segment.index_files_are_exact = True
    log.unsaved = [segment for segment in log.unsaved if segment is log.active or _tails(log, segment)]
    log.epochs_written = checkpoint.epochs_version
    del log.snapshots_due[: len(checkpoint.work.snapshots)]
    return True


def abandon(checkpoint: LogCheckpoint, error: Exception) -> None:
    for segment, *_ in checkpoint.noted:
        segment.index_files_are_exact = False
        if isinstance(error, FileShrunk):
            segment.index_entries_written = segment.time_entries_written = segment.txn_entries_written = -1


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
    if segment.index is None or not segment.index_files_are_exact:
        return False
    last_position = segment.index.positions[written - 1] if written else 0
    return (
        segment.size_bytes - last_position < index_files.INDEX_LAG_BYTES
        and _aborted_count(log, segment) == segment.txn_entries_written
    )


def _tails(log: PartitionLog, segment: Segment) -> list[Tail]:
    """What the files lack, or have too much. The time index comes first: an offset index entry without it would lead
    recovery astray. A file that does not exist yet is written even if it will be empty, except for the transaction
    index."""
    tails: list[Tail] = []
    is_exact = segment.index_files_are_exact
    index, time_index = segment.index, segment.time_index
    if time_index is not None and not (is_exact and len(time_index) == segment.time_entries_written):
        data = time_index.encode(max(0, segment.time_entries_written))
        tails.append(_tail(segment, names.TIME_INDEX, segment.time_entries_written, TIME_ENTRY_BYTES, data))
    if index is not None and not (is_exact and len(index) == segment.index_entries_written):
        data = index.encode(max(0, segment.index_entries_written))
        tails.append(_tail(segment, names.INDEX, segment.index_entries_written, INDEX_ENTRY_BYTES, data))
    if log.aborted:
        own, written = ending_in(log.aborted, segment.base_offset, segment.end_offset), segment.txn_entries_written
        if len(own) > written:
            data = encode_aborted(log.aborted[own.start + max(0, written) : own.stop])
            tails.append(_tail(segment, names.TXN_INDEX, written, TXN_ENTRY_BYTES, data))
    return tails


def _tail(segment: Segment, suffix: str, entries_written: int, entry_bytes: int, data: bytes) -> Tail:
    size_bytes = entries_written * entry_bytes if entries_written >= 0 else WHOLE
    return Tail(names.file_name(segment.base_offset, suffix), size_bytes, data)
