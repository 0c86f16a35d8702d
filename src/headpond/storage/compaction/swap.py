"""A cleaned segment takes the place of the ones that it was made from. Kafka's protocol, so that either broker can
finish what the other began:

    X.log.cleaned ...   complete and durable: may be thrown away
    X.log.swap ...      decided: the next start finishes it         <- the folder is synced: here the new one counts
    X.log.deleted ...   the old files, removed later                <- synced before the next step, or an old segment
    X.log ...           the new ones, the log last                     could come back beside the one that replaces it

Offset and time indexes can be made anew from the log, a transaction index can not. Where there is one, X.log goes, and
comes, after the other files are durable: whoever finds X.log.swap without X.log knows that the rest is the new one's.

Appends go on meanwhile; a roll, a truncation, retention and checkpoints of this log wait. Readers keep the files that
they have open; opening others waits. A failure before the decision leaves the log as it was; after it, the log
takes no more writes until the next start, because memory and files differ.
"""

from __future__ import annotations

from headpond.ports import FileSystem
from headpond.storage.compaction.job import CleanedSegment
from headpond.storage.folder import names
from headpond.storage.log import segment_files
from headpond.storage.log.log import PartitionLog
from headpond.storage.log.segment import Segment


class SegmentsChanged(Exception):
    """The segments that were cleaned are no longer those of the log."""


async def swap_in(log: PartitionLog, cleaned: CleanedSegment, old: list[Segment], truncations: int) -> None:
    """``old``: the segments, ``truncations``: the log's count, as they were when the cleaning began. Raises
    ``SegmentsChanged``, ``StorageFailed``."""

    async def work() -> None:
        present = [segment for segment in log.segments if segment.base_offset in cleaned.replaces]
        if present != old or log.truncations != truncations:
            raise SegmentsChanged
        await log.hold_checkpoints()
        log.reads.hold_files()
        try:
            await _swap_files_and_memory(log, cleaned, old)
        finally:
            log.reads.release_files()

    await log.change("swap in cleaned segments of", work, refuses_appends=False)


async def _swap_files_and_memory(log: PartitionLog, cleaned: CleanedSegment, old: list[Segment]) -> None:
    ports = log.ports
    base_offset = cleaned.replaces[0]
    try:
        await ports.workers.run(decide, ports.fs, log.path, base_offset)
    except OSError as error:
        await _undo(log, base_offset, error)
        raise
    try:
        moved = await ports.workers.run(complete, ports.fs, log.path, base_offset, cleaned.replaces)
    except OSError as error:
        log.fail(error)
        raise
    new = Segment(base_offset, created_ms=old[-1].created_ms)
    new.end_offset, new.size_bytes = old[-1].end_offset, cleaned.size_bytes
    new.first_timestamp = cleaned.first_timestamp
    new.max_timestamp, new.max_timestamp_offset = cleaned.max_timestamp, cleaned.max_timestamp_offset
    log.segments.replace(old, new)
    if cleaned.aborts_gone:
        gone = set(cleaned.aborts_gone)
        log.aborted = [each for each in log.aborted if each.last_offset not in gone]
    log.unsaved = [segment for segment in log.unsaved if segment not in old]
    log.size_bytes = sum(segment.size_bytes for segment in log.segments)
    log.reads.changed(old)
    ports.remove_later(moved, log.config.file_delete_delay_ms)


async def _undo(log: PartitionLog, base_offset: int, error: OSError) -> None:
    """Take back what was not decided; files that could be taken for a decision must not stay."""
    try:
        await log.ports.workers.run(take_back, log.ports.fs, log.path, base_offset)
    except OSError:
        log.fail(error)


def decide(fs: FileSystem, path: str, base_offset: int) -> None:
    """Blocking."""
    for name in _present(fs, path, base_offset, names.CLEANED):
        fs.rename(f"{path}/{name}{names.CLEANED}", f"{path}/{name}{names.SWAP}")
    segment_files.sync_folder(fs, path)


def take_back(fs: FileSystem, path: str, base_offset: int) -> None:
    """Blocking."""
    for suffix in (names.SWAP, names.CLEANED):
        for name in _present(fs, path, base_offset, suffix):
            fs.remove(f"{path}/{name}{suffix}")
        segment_files.sync_folder(fs, path)


def complete(fs: FileSystem, path: str, base_offset: int, replaced: list[int]) -> list[str]:
    """Blocking. Returns the old files, for ``remove_later``."""
    present = set(fs.list_dir(path))
    old = [names.file_name(offset, kind) for offset in replaced for kind in names.SEGMENT_SUFFIXES]
    old = [name for name in old if name in present]
    segment_files.rename_logs_last(fs, path, {name: f"{name}{names.DELETED}" for name in old})
    new = _present(fs, path, base_offset, names.SWAP)
    segment_files.rename_logs_last(fs, path, {f"{name}{names.SWAP}": name for name in new})
    return [f"{path}/{name}{names.DELETED}" for name in old]


def _present(fs: FileSystem, path: str, base_offset: int, suffix: str) -> list[str]:
    """The files of the segment that lie there under their names with ``suffix`` behind."""
    present = fs.list_dir(path)
    files = [names.file_name(base_offset, kind) for kind in names.SEGMENT_SUFFIXES]
    return [name for name in files if f"{name}{suffix}" in present]
