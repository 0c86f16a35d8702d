"""Opening a partition's folder: what is on disk becomes a log again.

After a clean shutdown only the last few kilobytes of the last segment are looked at. After a crash:

    recovery point: everything below was durable, with its epochs and all but the last index entries, when the point
    |               was written
    |  [seg 0][seg 1][seg ~~2~~~~~~~~~]
    |         snapshot ^      ^ recovery point
    |                  |----->| headers only: producers    |-- every CRC --> first bad or short batch: cut here, sync

The result is a prefix of what was appended that contains everything that was ever flushed. What is missing or damaged
besides the batches (indexes, epochs, snapshots, checkpoints) is made anew from them: it costs time, never data.

Safe to be interrupted at any point and run again. Everything here is blocking and works on its own objects.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from headpond.model import TopicPartition
from headpond.ports import File, FileSystem
from headpond.storage.folder import names
from headpond.storage.folder.checkpoint_files import CorruptCheckpoint
from headpond.storage.log.epochs import LeaderEpochs
from headpond.storage.log.offset_index import OffsetIndex
from headpond.storage.log.segment_files import set_aside, sync_file, sync_folder
from headpond.storage.producers.producers import ProducerStates
from headpond.storage.producers.txn_index import AbortedTxn
from headpond.storage.recovery import index_files
from headpond.storage.recovery.aborts import first_damaged_index, settle_aborted
from headpond.storage.recovery.leftovers import finish_interrupted_work
from headpond.storage.recovery.rebuild_producers import load_snapshot, widen_windows
from headpond.storage.recovery.scan import Collected, ScannedSegment, scan

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class FoundFolder:
    """One partition's folder and what the data folder's checkpoints say about it."""

    path: str
    tp: TopicPartition
    is_clean: bool
    recovery_point: int
    log_start_offset: int
    interval_bytes: int
    producer_expiration_ms: int
    now_ms: int


@dataclass(slots=True)
class RecoveredSegment:
    base_offset: int
    size_bytes: int
    end_offset: int
    modified_ms: int
    scanned: ScannedSegment | None = None  # with its indexes: the active one, and those that had to be scanned
    txn_entries: int = 0  # in its transaction index, which is right


@dataclass(slots=True)
class Recovered:
    """A log as found. ``file``: the active segment's, open for appends; None when the folder holds no segment."""

    segments: list[RecoveredSegment]
    file: File | None
    log_start_offset: int
    log_end_offset: int
    epochs: LeaderEpochs
    producers: ProducerStates
    epochs_on_disk: LeaderEpochs
    aborted: list[AbortedTxn] = field(default_factory=list)  # by the offset of their end
    scanned_bytes: int = 0
    to_remove: list[str] = field(default_factory=list)
    is_rebuilt: bool = False  # closed cleanly, and yet made from its batches: the files do not say all of it


def recover(fs: FileSystem, found: FoundFolder) -> Recovered:
    finish_interrupted_work(fs, found.path)
    bases, txn_bases, bare_bases = _segment_bases(fs, found.path)
    epochs_on_disk, epochs_known = _read_epochs(fs, found.path)
    producers = ProducerStates(found.tp, expiration_ms=found.producer_expiration_ms)
    collected = Collected(LeaderEpochs(epochs_on_disk.entries), producers, found.now_ms)
    log = Recovered([], None, 0, 0, collected.epochs, producers, epochs_on_disk)
    if not bases:
        log.log_start_offset = log.log_end_offset = found.log_start_offset
        log.producers.clear(found.log_start_offset)
        return log
    recovery_point = _recovery_point(fs, found, bases)
    damaged_from = first_damaged_index(fs, found.path, txn_bases, bare_bases)
    snapshot_offset = load_snapshot(fs, found, producers, bases[0], damaged_from)
    is_believed = found.is_clean and damaged_from is None
    log.is_rebuilt = found.is_clean and not is_believed
    if snapshot_offset is None and is_believed:
        snapshot_offset = recovery_point  # Kafka's rule: a clean log without a snapshot has no producers to know
        log.producers.clear(recovery_point)
    elif snapshot_offset is None:
        snapshot_offset = max(bases[0], found.log_start_offset)
        log.producers.clear(snapshot_offset)
    scan_from = min(recovery_point, snapshot_offset)
    if not epochs_known:
        scan_from = bases[0]
    believed_end_offset = 1 << 63 if is_believed else producers.end_offset
    _recover_segments(fs, found, log, collected, bases, scan_from, recovery_point)
    if not found.is_clean:
        sync_folder(fs, found.path)  # names that were seen may have been in memory only
    _settle_offsets(fs, found, log)
    settle_aborted(
        fs,
        found.path,
        log,
        txn_bases,
        believed_end_offset=believed_end_offset,
        durable_end_offset=1 << 63 if found.is_clean else recovery_point,
        replayed=collected.aborted,
    )
    widen_windows(log)
    return log


def _segment_bases(fs: FileSystem, path: str) -> tuple[list[int], list[int], list[int]]:
    """Base offsets of the segments, of those with a transaction index, and of those without any index. An index without
    its log is nothing."""
    parsed = [names.parse_file_name(name) for name in fs.list_dir(path)]
    bases = [each[0] for each in parsed if each is not None and each[1] == names.LOG]
    for each in parsed:
        if each is not None and each[1] not in (names.LOG, names.SNAPSHOT) and each[0] not in bases:
            fs.remove(f"{path}/{names.file_name(*each)}")
    txn_bases = [each[0] for each in parsed if each is not None and each[1] == names.TXN_INDEX and each[0] in bases]
    indexed = {each[0] for each in parsed if each is not None and each[1] not in (names.LOG, names.SNAPSHOT)}
    return sorted(bases), txn_bases, [base for base in bases if base not in indexed]


def _read_epochs(fs: FileSystem, path: str) -> tuple[LeaderEpochs, bool]:
    file = f"{path}/{names.LEADER_EPOCHS}"
    if not fs.exists(file):
        return LeaderEpochs(), False
    try:
        return LeaderEpochs.decode(fs.read_file(file)), True
    except CorruptCheckpoint as error:
        _log.warning("%s is damaged (%s); the epochs are read from the batches", file, error)
        return LeaderEpochs(), False


def _recovery_point(fs: FileSystem, found: FoundFolder, bases: list[int]) -> int:
    """Where checking begins: nowhere for a clean log."""
    if found.is_clean:
        return _end_by_index(fs, found, bases[-1])
    return max(found.recovery_point, bases[0])


# --- segments ---------------------------------------------------------------------------------------------------------


def _recover_segments(
    fs: FileSystem,
    found: FoundFolder,
    log: Recovered,
    collected: Collected,
    bases: list[int],
    scan_from: int,
    recovery_point: int,
) -> None:
    expected_offset = bases[0]
    for slot, base in enumerate(bases):
        is_last = slot == len(bases) - 1
        end_offset = None if is_last else bases[slot + 1]
        path = f"{found.path}/{names.file_name(base, names.LOG)}"
        if end_offset is not None and end_offset <= scan_from and (found.is_clean or end_offset < recovery_point):
            # A recovery point behind its end was written after its indexes. One at its end may be older than the roll:
            # the last entries may be missing.
            log.segments.append(RecoveredSegment(base, fs.file_size(path), end_offset, fs.modified_ms(path)))
            expected_offset = end_offset
            continue
        file = fs.open(path)
        try:
            if not found.is_clean:
                # A sync may have failed before the process was killed, noted or not: memory then holds what the device
                # never got. Pages that still wait to be written are not forgotten, those that were lost are.
                sync_file(file)
                file.forget_cached()
            segment = _scan_one(fs, found, log, file, base, collected, scan_from, recovery_point)
            size_bytes = segment.scanned.position if segment.scanned else segment.size_bytes
            cut = file.size() > size_bytes
            if cut and end_offset is not None and end_offset <= recovery_point:
                # It was durable as a whole, and is read for what its batches tell: damage in it is no end of the log.
                _log.error("%s is damaged at byte %d and stays as it is: %s", path, size_bytes, _fault(segment))
                segment, cut = RecoveredSegment(base, file.size(), end_offset, segment.modified_ms), False
            if cut:
                _log.warning(
                    "%s: cut at %d bytes, offset %d: %s", path, size_bytes, segment.end_offset, _fault(segment)
                )
                file.truncate(size_bytes)
            if cut or not found.is_clean:
                # What was cut must not come back below what is appended now. Also what was read back well may be in
                # memory only: it counts as flushed from here on.
                sync_file(file)
        except BaseException:
            file.close()
            raise
        log.segments.append(segment)
        expected_offset = segment.end_offset
        # A new segment is durable before the end of the one before it: a power cut may leave a hole between them.
        # Below the recovery point nothing can be missing: there a hole is what compaction left.
        has_hole = end_offset is not None and recovery_point <= segment.end_offset < end_offset
        if cut or is_last or has_hole:
            log.file = file
            log.to_remove += _drop_later(fs, found.path, bases[slot + 1 :])
            break
        file.close()
        segment.end_offset = bases[slot + 1]
    log.log_end_offset = expected_offset


def _fault(segment: RecoveredSegment) -> str:
    return (segment.scanned.fault if segment.scanned else None) or "unknown"


def _scan_one(
    fs: FileSystem,
    found: FoundFolder,
    log: Recovered,
    file: File,
    base: int,
    collected: Collected,
    scan_from: int,
    recovery_point: int,
) -> RecoveredSegment:
    size_bytes = file.size()
    files = index_files.read_index_files(fs, found.path, base, size_bytes)
    scanned: ScannedSegment | None = None
    if files is not None:
        scanned = index_files.trusted_part(
            files,
            file,
            size_bytes,
            scan_from=scan_from,
            recovery_point=recovery_point,
            lag_bytes=0 if found.is_clean else index_files.INDEX_LAG_BYTES,
        )
    elif base >= recovery_point:
        scanned = ScannedSegment.empty(base)  # it is new, and has none yet
    scanned = scanned or ScannedSegment.anew(base)
    log.scanned_bytes += size_bytes - scanned.position
    scan(
        file,
        size_bytes,
        scanned,
        collected,
        interval_bytes=found.interval_bytes,
        verify_from_offset=recovery_point,
    )
    if files is not None and scanned.index_entries_on_disk >= 0:
        files.compare(scanned)
        scanned.is_on_disk &= found.is_clean  # after a crash perhaps in memory only
    modified_ms = fs.modified_ms(f"{found.path}/{names.file_name(base, names.LOG)}")
    return RecoveredSegment(base, scanned.position, scanned.next_offset, modified_ms, scanned)


def _end_by_index(fs: FileSystem, found: FoundFolder, base: int) -> int:
    """Where to start looking for the end of a cleanly closed log: the last batch that its last segment's index
    knows."""
    try:
        size_bytes = fs.file_size(f"{found.path}/{names.file_name(base, names.LOG)}")
        data = fs.read_file(f"{found.path}/{names.file_name(base, names.INDEX)}")
    except FileNotFoundError:
        return base
    index = OffsetIndex.decode_prefix(base, data, size_bytes=size_bytes)
    return base + index.relative_offsets[-1] + 1 if len(index) else base


def _drop_later(fs: FileSystem, path: str, bases: list[int]) -> list[str]:
    """Segments behind a cut: they can't follow it."""
    if not bases:
        return []
    _log.warning("%s: segments %s lie behind the cut and are set aside", path, bases)
    return set_aside(fs, path, bases, newest_first=True)


def _settle_offsets(fs: FileSystem, found: FoundFolder, log: Recovered) -> None:
    if found.log_start_offset > log.log_end_offset:
        # Deleted on request up to an offset that the disk does not reach any more: those offsets are not given again.
        _log.warning("%s ends at %d, before its log start %d", found.path, log.log_end_offset, found.log_start_offset)
        if log.file is not None:
            log.file.close()
        log.to_remove += set_aside(fs, found.path, [segment.base_offset for segment in log.segments], newest_first=True)
        log.segments, log.file = [], None
        log.log_start_offset = log.log_end_offset = found.log_start_offset
        log.producers.clear(log.log_end_offset)
    else:
        log.log_start_offset = max(found.log_start_offset, log.segments[0].base_offset)
    log.epochs.truncate_from_end(log.log_end_offset)
    log.epochs.truncate_from_start(log.log_start_offset)
    log.producers.on_log_start(log.log_start_offset)
    log.producers.end_offset = log.log_end_offset
