"""The blocking file operations of one partition's folder. They run in workers, take plain values and return plain
values.

Each is safe to repeat after it failed half-way. The order inside each is what makes it safe against a power cut; a
sync that fails comes out as ``SyncFailed``, which gives the folder up, every other ``OSError`` (no space, say) is the
caller's to report.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headpond.model import TopicId
from headpond.ports import File, FileSystem
from headpond.storage.folder import names

_NOT_SYNCED_AT_ALL = (errno.ENOENT, errno.EMFILE, errno.ENFILE)
"""The folder could not even be opened (its partition was deleted, too many files are open): nothing was lost."""


class SyncFailed(OSError):
    """fsync has failed: what it should have kept may be gone, and asking again would not tell."""


class FolderTaken(Exception):
    """A folder of the partition's name holds another topic's data, or data that was not loaded."""


def sync_file(file: File) -> None:
    try:
        file.sync()
    except OSError as error:
        raise SyncFailed(*error.args) from error


def sync_files(files: Iterable[File]) -> None:
    for file in files:
        sync_file(file)


def sync_folder(fs: FileSystem, path: str) -> None:
    try:
        fs.sync_dir(path)
    except OSError as error:
        if error.errno in _NOT_SYNCED_AT_ALL:
            raise
        raise SyncFailed(*error.args) from error


def create_partition(
    fs: FileSystem, data_dir: str, folder: str, topic_id: TopicId, base_offset: int, aside: str
) -> File:
    """The folder, its identity and its first, empty segment: all durable before the first append. Another topic's
    folder of that name is renamed to ``aside``."""
    path = f"{data_dir}/{folder}"
    if fs.exists(path) and not _is_ours(fs, path, topic_id):
        fs.rename(path, f"{data_dir}/{aside}")
    fs.make_dirs(path)
    metadata = fs.open(f"{path}/{names.PARTITION_METADATA}", create=True)
    try:
        metadata.truncate(0)
        metadata.write(names.encode_partition_metadata(topic_id))
        sync_file(metadata)
    finally:
        metadata.close()
    file = create_segment(fs, path, base_offset)
    sync_folder(fs, data_dir)
    return file


def _is_ours(fs: FileSystem, path: str, topic_id: TopicId) -> bool:
    """An earlier attempt may have left the folder without data. With data it should have been loaded: not to be
    touched."""
    metadata = f"{path}/{names.PARTITION_METADATA}"
    try:
        found = names.decode_partition_metadata(fs.read_file(metadata)) if fs.exists(metadata) else topic_id
    except names.BadFile:
        found = topic_id
    if found != topic_id:
        return False
    if any(fs.file_size(f"{path}/{name}") > 0 for name in fs.list_dir(path) if name.endswith(names.LOG)):
        raise FolderTaken(f"{path} holds data that was not loaded at start")
    return True


def create_segment(fs: FileSystem, path: str, base_offset: int) -> File:
    """An empty ``.log`` that a power cut will not take back. A leftover of that name never held acknowledged data."""
    file = fs.open(f"{path}/{names.file_name(base_offset, names.LOG)}", create=True)
    try:
        if file.size():
            file.truncate(0)
        sync_file(file)
        sync_folder(fs, path)
    except BaseException:
        file.close()
        raise
    return file


def cut(fs: FileSystem, path: str, base_offset: int, size_bytes: int, later: list[int]) -> tuple[File, list[str]]:
    """End the log inside the segment ``base_offset``; durable. Returns its file, open for appends, and what to
    remove."""
    moved = set_aside(fs, path, later, newest_first=True)
    file = fs.open(f"{path}/{names.file_name(base_offset, names.LOG)}")
    try:
        cut_file(file, size_bytes)
    except BaseException:
        file.close()
        raise
    return file, moved


def write_txn_index(fs: FileSystem, path: str, base_offset: int, data: bytes) -> None:
    """A segment's transaction index becomes ``data``, as a whole and durably; without entries there is no file."""
    file = f"{path}/{names.file_name(base_offset, names.TXN_INDEX)}"
    if data:
        fs.write_file_atomically(file, data)
    elif fs.exists(file):
        fs.remove(file)
        sync_folder(fs, path)


def cut_file(file: File, size_bytes: int) -> None:
    """Durable when it returns: what is appended next may go to another file, and what was cut must not come back below
    it."""
    file.truncate(size_bytes)
    sync_file(file)


def set_aside(fs: FileSystem, path: str, offsets: Iterable[int], *, newest_first: bool) -> list[str]:
    """Rename the files of the segments with these base offsets to ``.deleted``, one segment after the other, so that
    what a power cut leaves has no hole: the newest first when the log's end goes, the oldest first when its start
    goes. Readers that have them open are not disturbed. Returns the new paths, to be removed later."""
    present = set(fs.list_dir(path))
    moved: list[str] = []
    for offset in sorted(offsets, reverse=newest_first):
        for suffix in names.SEGMENT_SUFFIXES:
            name = names.file_name(offset, suffix)
            if name in present:
                fs.rename(f"{path}/{name}", f"{path}/{name}{names.DELETED}")
                moved.append(f"{path}/{name}{names.DELETED}")
        sync_folder(fs, path)
    return moved


def rename_logs_last(fs: FileSystem, path: str, new_names: Mapping[str, str]) -> None:
    """Rename files of segments, durably; a ``.log`` when the others are durable, if there is a transaction index among
    them: the indexes that are left can be made anew."""
    logs = [name for name in new_names if names.LOG in name]
    others = [name for name in new_names if name not in logs]
    for name in others:
        fs.rename(f"{path}/{name}", f"{path}/{new_names[name]}")
    if any(names.TXN_INDEX in name for name in others):
        sync_folder(fs, path)
    for name in logs:
        fs.rename(f"{path}/{name}", f"{path}/{new_names[name]}")
    sync_folder(fs, path)


def remove_snapshots(fs: FileSystem, path: str, *, at_or_above: int | None = None, below: int | None = None) -> None:
    """Producer snapshots that the log has outgrown at either end."""
    for name in fs.list_dir(path):
        parsed = names.parse_file_name(name)
        if parsed is None or parsed[1] != names.SNAPSHOT:
            continue
        if (at_or_above is not None and parsed[0] >= at_or_above) or (below is not None and parsed[0] < below):
            fs.remove(f"{path}/{name}")


# --- checkpoints of one log -------------------------------------------------------------------------------------------


WHOLE = -1


class Tail(NamedTuple):
    """Entries to add to an index file behind the first ``size_bytes``, which it has; or (``WHOLE``) its new content."""

    name: str
    size_bytes: int
    data: bytes


class FileShrunk(OSError):
    """An index file does not have what was written to it."""


class Housekeeping(NamedTuple):
    """What a log wants on disk before its recovery point moves."""

    path: str
    tails: list[Tail]
    epochs: bytes | None
    snapshots: list[tuple[int, bytes]]  # (end offset, content)
    snapshots_kept: frozenset[int]  # segments' base offsets: these stay, of the others the newest two


SNAPSHOTS_BETWEEN_SEGMENTS_MAX = 2


def save(fs: FileSystem, work: Housekeeping, *, sync: bool) -> None:
    """Write it all; with ``sync`` also make it durable, else the caller does so for many logs at once. Entries of an
    index file that are right are never taken away on the way: recovery relies on them (``index_files``)."""
    for tail in work.tails:
        _append_tail(fs, f"{work.path}/{tail.name}", tail, sync=sync)
    for offset, data in work.snapshots:
        _write_snapshot(fs, f"{work.path}/{names.file_name(offset, names.SNAPSHOT)}", data, sync=sync)
    if sync:
        sync_folder(fs, work.path)
    if work.epochs is not None:
        fs.write_file_atomically(f"{work.path}/{names.LEADER_EPOCHS}", work.epochs)


def _append_tail(fs: FileSystem, path: str, tail: Tail, *, sync: bool) -> None:
    if tail.size_bytes == WHOLE:
        fs.write_file_atomically(path, tail.data)
        return
    file = fs.open(path, create=True)
    try:
        if file.size() < tail.size_bytes:
            raise FileShrunk(f"{path} has shrunk to {file.size()} bytes, {tail.size_bytes} were written")
        if file.size() > tail.size_bytes:
            file.truncate(tail.size_bytes)
        if tail.data:
            file.write(tail.data)
        if sync:
            sync_file(file)
    finally:
        file.close()


def _write_snapshot(fs: FileSystem, path: str, data: bytes, *, sync: bool) -> None:
    file = fs.open(path, create=True)
    try:
        file.truncate(0)
        file.write(data)
        if sync:
            sync_file(file)
    finally:
        file.close()


def prune_snapshots(fs: FileSystem, work: Housekeeping) -> None:
    """After the newest is durable: forget those in between that recovery will not ask for."""
    found: list[int] = []
    for name in fs.list_dir(work.path):
        parsed = names.parse_file_name(name)
        if parsed is not None and parsed[1] == names.SNAPSHOT and parsed[0] not in work.snapshots_kept:
            found.append(parsed[0])
    for offset in sorted(found)[:-SNAPSHOTS_BETWEEN_SEGMENTS_MAX]:
        fs.remove(f"{work.path}/{names.file_name(offset, names.SNAPSHOT)}")
