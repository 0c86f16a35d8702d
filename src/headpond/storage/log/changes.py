"""The changes of a log's files: create, roll, repair, truncate, restart, retention.

Each runs alone (``PartitionLog.change``) while appends are refused; each has its blocking part in a worker and
changes what the loop sees afterwards. What a crash in the middle leaves is said at each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from headpond.model import invariant
from headpond.ports import File
from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.folder import names
from headpond.storage.log import retention, segment_files
from headpond.storage.log.lookup import find_batch
from headpond.storage.log.segment import Segment
from headpond.storage.producers.producers import ProducerStates
from headpond.storage.producers.txn_index import AbortedTxn, ending_in
from headpond.storage.producers.txn_index import encode as encode_aborted
from headpond.storage.recovery import index_files
from headpond.storage.recovery.rebuild_producers import rebuild_producers
from headpond.storage.recovery.recovery import FoundFolder, Recovered
from headpond.storage.recovery.scan import ScannedSegment, scan

if TYPE_CHECKING:
    from headpond.storage.log.log import PartitionLog

T = TypeVar("T")


async def create(log: PartitionLog, now_ms: int) -> None:
    """The folder and the first segment. Crash: an empty folder, or an empty log."""
    ports = log.ports
    base_offset = log.log_end_offset
    await ports.folder_is_free(log.tp)
    aside = names.renamed_folder(log.tp, ports.random.random_bytes(16), names.STRAY_FOLDER)
    file = await ports.workers.run(
        segment_files.create_partition, ports.fs, ports.data_dir, str(log.tp), log.topic_id, base_offset, aside
    )
    _activate(log, base_offset, now_ms).start(file)


async def roll(log: PartitionLog, now_ms: int) -> None:
    """A new active segment. Its name is durable before the old one's end is: recovery sees to the hole that a crash
    may leave."""
    old = log.active
    if old is None or old.size_bytes == 0:
        return
    base_offset = log.log_end_offset
    file = await log.ports.workers.run(segment_files.create_segment, log.ports.fs, log.path, base_offset)
    old.finish_time_index()
    old.created_ms = now_ms
    if old not in log.unsaved:
        log.unsaved.append(old)
    log_checkpoint.take_snapshot(log)
    log.ports.on_changed(log)
    _activate(log, base_offset, now_ms).start(file)
    log.reads.finished(old)


def _activate(log: PartitionLog, base_offset: int, now_ms: int) -> Segment:
    jitter_max = min(log.config.segment_jitter_ms, log.config.segment_ms)
    jitter_ms = log.ports.random.random_int(jitter_max) if jitter_max > 0 else 0
    segment = Segment(base_offset, created_ms=now_ms, jitter_ms=jitter_ms)
    log.segments.add(segment)
    log.active = segment
    log.roll_is_due = False
    return segment


async def repair(log: PartitionLog) -> None:
    """A write failed: cut off what it left. Works on a full disk. Crash: recovery finds the same end by the CRCs."""
    active = log.active
    if active is not None and active.file is not None:
        await log.ports.workers.run(segment_files.cut_file, active.file, active.size_bytes)
    log.is_torn = False


async def truncate(log: PartitionLog, end_offset: int) -> None:
    """Cut the log; a batch that reaches ``end_offset`` goes as a whole. Once done it is never undone; a crash before
    that leaves an end between the cut and the old one. The recovery point goes down first: index entries of what is
    cut must not be believed."""
    if end_offset >= log.log_end_offset or log.active is None:
        return
    if end_offset <= log.segments[0].base_offset:
        await restart(log, end_offset)
        return
    log.is_being_cut = True
    await log.flush()
    await log.ports.leave_journal(log)
    keep = log.segments.holding(end_offset - 1)
    keep.pin()
    try:
        found = await log.reads.drive(find_batch(keep, end_offset))
        size_bytes = found.position if found is not None else keep.size_bytes
        new_end_offset = min(end_offset, found.base_offset) if found is not None else end_offset
        if new_end_offset > log.log_start_offset:
            await _cut_off(log, keep, size_bytes, new_end_offset)
            return
    finally:
        keep.unpin()
    await restart(log, end_offset)  # nothing that may be read is left


async def _cut_off(log: PartitionLog, keep: Segment, size_bytes: int, end_offset: int) -> None:
    await log.ports.lower_recovery_point(log, end_offset)
    gone = [segment for segment in log.segments if segment.base_offset > keep.base_offset]
    cut = _Cut(log, keep, size_bytes, end_offset, gone)
    file, scanned, moved = await _all_or_offline(log, cut.files)
    log.ports.remove_later(moved, log.config.file_delete_delay_ms)
    keep.replace_file(file)
    _cut_memory(log, keep, scanned, end_offset, gone)
    log.producers = await log.ports.workers.run(cut.producers)


async def _all_or_offline(log: PartitionLog, files: Callable[[], T]) -> T:
    """Half a cut leaves files that memory does not describe: then the log takes no more writes until the next start."""
    try:
        return await log.ports.workers.run(files)
    except OSError as error:
        log.fail(error)
        raise


class _Cut:
    """The blocking side of a truncation, with copies of what it needs."""

    def __init__(self, log: PartitionLog, keep: Segment, size_bytes: int, end_offset: int, gone: list[Segment]) -> None:
        assert keep.index is not None and keep.time_index is not None
        self._fs = log.ports.fs
        self._path = log.path
        self._base_offset = keep.base_offset
        self._size_bytes = size_bytes
        self._later = [segment.base_offset for segment in gone]
        self._index, self._time_index = keep.index.copy(), keep.time_index.copy()
        self._index.truncate(end_offset)
        self._time_index.truncate(end_offset)
        own = ending_in(log.aborted, keep.base_offset, end_offset)
        self._aborted: list[AbortedTxn] = log.aborted[own.start : own.stop]
        self._interval_bytes = log.config.index_interval_bytes
        self._found = FoundFolder(
            path=log.path,
            tp=log.tp,
            is_clean=False,
            recovery_point=end_offset,
            log_start_offset=log.log_start_offset,
            interval_bytes=log.config.index_interval_bytes,
            producer_expiration_ms=log.producers.expiration_ms,
            now_ms=log.ports.clock.now_ms(),
        )
        self._segments = [
            (segment.base_offset, segment.size_bytes, 0)
            for segment in log.segments
            if segment.base_offset < keep.base_offset
        ]
        self._segments.append((keep.base_offset, size_bytes, 0))

    def files(self) -> tuple[File, ScannedSegment, list[str]]:
        file, moved = segment_files.cut(self._fs, self._path, self._base_offset, self._size_bytes, self._later)
        # Before anything is appended behind the cut: an entry must not outlive its marker.
        segment_files.write_txn_index(self._fs, self._path, self._base_offset, encode_aborted(self._aborted))
        scanned = index_files.resume(file, self._size_bytes, self._index, self._time_index)
        scanned = scanned or ScannedSegment.anew(self._base_offset)
        scan(
            file,
            self._size_bytes,
            scanned,
            None,
            interval_bytes=self._interval_bytes,
            verify_from_offset=1 << 63,
        )
        return file, scanned, moved

    def producers(self) -> ProducerStates:
        return rebuild_producers(self._fs, self._found, self._segments)


def _cut_memory(
    log: PartitionLog, keep: Segment, scanned: ScannedSegment, end_offset: int, gone: list[Segment]
) -> None:
    log.truncations += 1
    log.is_unnoted = True  # its end may lie in a gap, which recovery does not see before a batch follows
    log.segments.remove(gone)
    log.unsaved = [segment for segment in log.unsaved if segment not in gone]
    # What the cut has kept is in the files as far as it was written.
    scanned.index_entries_on_disk = min(scanned.index_entries_on_disk, keep.index_entries_written)
    scanned.time_entries_on_disk = min(scanned.time_entries_on_disk, keep.time_entries_written)
    fill(keep, scanned)
    keep.end_offset = end_offset
    log.active = keep
    log.log_end_offset = end_offset
    log.flushed_end_offset = min(log.flushed_end_offset, end_offset)
    log.size_bytes = sum(segment.size_bytes for segment in log.segments)
    log.epochs.truncate_from_end(end_offset)
    del log.aborted[ending_in(log.aborted, 0, end_offset).stop :]
    keep.txn_entries_written = len(ending_in(log.aborted, keep.base_offset, end_offset))
    log.snapshots_due = [due for due in log.snapshots_due if due[0] <= end_offset]
    log.is_torn = False
    log.reads.changed(gone)
    log.ports.on_changed(log)


async def restart(log: PartitionLog, offset: int) -> None:
    """Begin anew, empty, at ``offset``. Crash: the old log, an empty folder (a log at its old start) or the new one."""
    log.is_being_cut = True
    if log.active is not None:
        await log.flush()
        await log.ports.leave_journal(log)
        await log.ports.lower_recovery_point(log, 0)
        bases = list(log.segments.base_offsets)
        fs, path = log.ports.fs, log.path

        def files() -> tuple[File, list[str]]:
            moved = segment_files.set_aside(fs, path, bases, newest_first=True)
            segment_files.remove_snapshots(fs, path)
            return segment_files.create_segment(fs, path, offset), moved

        file, moved = await _all_or_offline(log, files)
        log.ports.remove_later(moved, log.config.file_delete_delay_ms)
        gone = list(log.segments)
        log.segments.remove(gone)
        log.unsaved = []
        _activate(log, offset, log.ports.clock.now_ms()).start(file)
        log.reads.changed(gone)
        log.ports.on_changed(log)
    log.truncations += 1
    log.is_unnoted = True
    log.log_start_offset = log.log_end_offset = log.flushed_end_offset = offset
    log.size_bytes = 0
    log.snapshots_due = []
    log.epochs.truncate_from_end(0)
    log.aborted.clear()
    log.producers.clear(offset)
    log.is_torn = False
    log.on_log_start(offset)
    await log.ports.save_log_starts()  # one that lies higher would hide what is appended now, after a crash


# --- the log's start --------------------------------------------------------------------------------------------------


def advance_log_start(log: PartitionLog, offset: int) -> None:
    """In memory; the checkpoint file is the caller's business."""
    if offset <= log.log_start_offset:
        return
    invariant(offset <= log.log_end_offset, "log start beyond the log's end", log, offset)
    log.log_start_offset = offset
    log.epochs.truncate_from_start(offset)
    log.producers.on_log_start(offset)
    log.ports.on_changed(log)
    log.on_log_start(offset)


async def delete_old_segments(log: PartitionLog, now_ms: int) -> int:
    """Retention. Crash: some of the oldest segments are gone, or none; never a hole."""
    count = await _doomed(log, now_ms)
    if count == 0:
        return 0
    if count == len(log.segments):
        await log.change("roll", lambda: _roll_if_doomed(log, now_ms))
    return await log.change("retention", lambda: _delete_doomed(log, now_ms), refuses_appends=False)


async def _roll_if_doomed(log: PartitionLog, now_ms: int) -> None:
    if await _doomed(log, now_ms) == len(log.segments):
        await roll(log, now_ms)


async def _delete_doomed(log: PartitionLog, now_ms: int) -> int:
    """Appends go on meanwhile: the active segment stays."""
    await log.hold_checkpoints()
    count = await _doomed(log, now_ms)
    gone = [segment for segment in list(log.segments)[:count] if segment is not log.active]
    following = log.segments.after(gone[-1]) if gone else None
    if following is None:
        return 0
    advance_log_start(log, following.base_offset)
    moved = await log.ports.workers.run(_move_oldest, log, [segment.base_offset for segment in gone])
    log.ports.remove_later(moved, log.config.file_delete_delay_ms)
    log.segments.remove(gone)
    log.ports.meters.retention_segments += len(gone)
    log.ports.meters.retention_bytes += sum(segment.size_bytes for segment in gone)
    log.unsaved = [segment for segment in log.unsaved if segment not in gone]
    log.size_bytes = sum(segment.size_bytes for segment in log.segments)
    del log.aborted[: ending_in(log.aborted, 0, following.base_offset).stop]
    log.reads.changed(gone)
    return len(gone)


def _move_oldest(log: PartitionLog, bases: list[int]) -> list[str]:
    """Blocking; of the log it reads only what never changes."""
    fs, path = log.ports.fs, log.path
    moved = segment_files.set_aside(fs, path, bases, newest_first=False)
    segment_files.remove_snapshots(fs, path, below=bases[-1] + 1)
    return moved


async def _doomed(log: PartitionLog, now_ms: int) -> int:
    """How many segments from the oldest on retention gives up; timestamps are loaded as far as they are needed."""
    modified_ms: dict[Segment, int] = {}
    while True:
        verdict = retention.doomed(
            [*log.segments],
            log.config,
            log_start_offset=log.log_start_offset,
            up_to_end_offset=log.committed_end_offset(),
            now_ms=now_ms,
            modified_ms=modified_ms,
        )
        if isinstance(verdict, int):
            return verdict
        if verdict.max_timestamp is None:
            await log.reads.load(verdict)
        else:
            path = f"{log.path}/{names.file_name(verdict.base_offset, names.LOG)}"
            modified_ms[verdict] = await log.ports.workers.run(log.ports.fs.modified_ms, path)


# --- opening ----------------------------------------------------------------------------------------------------------


def adopt(log: PartitionLog, recovered: Recovered) -> None:
    """Take over what recovery found; everything it kept is durable."""
    for found in recovered.segments:
        segment = Segment(found.base_offset, created_ms=found.modified_ms)
        segment.size_bytes, segment.end_offset = found.size_bytes, found.end_offset
        segment.txn_entries_written = found.txn_entries
        log.segments.add(segment)
        if found.scanned is not None:
            is_active = found is recovered.segments[-1]
            fill(segment, found.scanned)
            if not is_active:
                segment.finish_time_index()
            log.unsaved.append(segment)
    if recovered.file is not None:
        log.active = log.segments[-1]
        log.active.file = recovered.file
    log.log_start_offset = recovered.log_start_offset
    log.log_end_offset = log.flushed_end_offset = recovered.log_end_offset
    log.epochs, log.producers, log.aborted = recovered.epochs, recovered.producers, recovered.aborted
    if recovered.epochs.entries == recovered.epochs_on_disk.entries:
        log.epochs_written = log.epochs.version
    log.size_bytes = sum(segment.size_bytes for segment in log.segments)
    log.bytes_since_snapshot = recovered.scanned_bytes
    log.leave_to_recovery(recovered.scanned_bytes)


def fill(segment: Segment, scanned: ScannedSegment) -> None:
    """What a scan found becomes what the loop knows."""
    segment.index, segment.time_index = scanned.index, scanned.time_index
    segment.size_bytes = scanned.position
    segment.end_offset = max(scanned.next_offset, segment.base_offset)
    segment.first_timestamp = scanned.first_timestamp
    segment.max_timestamp = scanned.max_timestamp
    segment.max_timestamp_offset = scanned.max_timestamp_offset
    segment.bytes_since_entry = scanned.bytes_since_entry
    segment.note_index_files(scanned)
