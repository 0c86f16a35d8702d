"""Partition folders that the metadata store does not know, made ready to be loaded as ours. Blocking.

``strays`` and ``look_into`` find out what there is. ``make_ready`` comes before the topics are written to the metadata
store; when it returns, what was inspected is durable and the checkpoints say that it is sound, so that a crash
from here on ends in an ordinary recovery: the folders are still strays, or they are partitions like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from headpond.model import TopicPartition
from headpond.ports import FileSystem
from headpond.storage.folder import names
from headpond.storage.folder.checkpoint_files import encode_offsets, read_offsets
from headpond.storage.log.segment_files import sync_file, sync_folder
from headpond.storage.producers import txn_index
from headpond.storage.recovery.inspection import Inspected, inspect, read_topic_id, segment_bases
from headpond.storage.recovery.leftovers import finish_interrupted_work


class Stray(NamedTuple):
    path: str
    tp: TopicPartition
    size_bytes: int


def strays(
    fs: FileSystem, data_dir: str, *, leave_out: Collection[TopicPartition], topics: Collection[str] | None
) -> list[Stray]:
    """The folders of all partitions but ``leave_out``, or of the named topics only, by topic and partition."""
    found: list[Stray] = []
    for name in fs.list_dir(data_dir):
        tp, path = names.parse_folder_name(name), f"{data_dir}/{name}"
        if tp is None or tp in leave_out or (topics is not None and tp.topic not in topics) or not fs.is_dir(path):
            continue
        sizes = [_size_bytes(fs, f"{path}/{each}") for each in fs.list_dir(path) if each.endswith(names.LOG)]
        found.append(Stray(path, tp, sum(sizes)))
    return sorted(found, key=lambda each: each.tp)


def look_into(fs: FileSystem, stray: Stray, *, settle: bool) -> Inspected:
    """Read a folder from end to end. ``settle``: finish what was interrupted in it first (a compaction, a deletion).
    What can't be read is the folder's problem: others are not held up by it."""
    try:
        if settle:
            finish_interrupted_work(fs, stray.path)
        return inspect(fs, stray.path, stray.tp)
    except OSError as error:
        name = str(error.filename or "").rpartition("/")[2]
        return Inspected(stray.tp, stray.path, None, problem=f"{name or 'it'} can't be read: {error.strerror or error}")


def _size_bytes(fs: FileSystem, path: str) -> int:
    """For the progress that is shown. What can't be read has none: ``look_into`` says why."""
    try:
        return fs.file_size(path)
    except OSError:
        return 0


def make_ready(fs: FileSystem, data_dir: str, folders: Sequence[Inspected], *, keep_log_starts: bool) -> None:
    """``keep_log_starts``: the folder's own checkpoints of log starts and cleaned offsets came with the partitions (a
    whole folder was copied); else what they say about them is about others of their name."""
    for folder in folders:
        _renew_indexes(fs, folder)
        if folder.topic_id is not None and read_topic_id(fs, folder.path) is None:
            metadata = names.encode_partition_metadata(folder.topic_id)
            fs.write_file_atomically(f"{folder.path}/{names.PARTITION_METADATA}", metadata)
    _make_durable(fs, data_dir, folders)
    # Below the recovery point nothing is missing: holes between batches are what compaction left.
    _merge(fs, f"{data_dir}/{names.RECOVERY_POINTS}", {each.tp: each.end_offset for each in folders})
    if not keep_log_starts:
        _merge(fs, f"{data_dir}/{names.LOG_STARTS}", {each.tp: each.start_offset for each in folders})
        # Of others of their name, too: tombstones would go before what they delete.
        _leave_out(fs, f"{data_dir}/{names.CLEANED_OFFSETS}", {each.tp for each in folders})
    # Not closed by us: recovery cuts what a crash may have left at their end.
    fs.remove(f"{data_dir}/{names.CLEAN_SHUTDOWN}")
    fs.sync_dir(data_dir)


def _renew_indexes(fs: FileSystem, folder: Inspected) -> None:
    """What may have been copied while it was written is made anew: the active segment's indexes by recovery, the
    transaction indexes from the markers."""
    bases = segment_bases(fs, folder.path)
    for suffix in (names.INDEX, names.TIME_INDEX):
        for base in bases[-1:]:
            fs.remove(f"{folder.path}/{names.file_name(base, suffix)}")
    for base in bases:
        entries = [entry for segment, entry in folder.aborted if segment == base]
        path = f"{folder.path}/{names.file_name(base, names.TXN_INDEX)}"
        if entries:
            fs.write_file_atomically(path, txn_index.encode(entries))
        else:
            fs.remove(path)


def _make_durable(fs: FileSystem, data_dir: str, folders: Iterable[Inspected]) -> None:
    """Who copied the files need not have synced them. At once where that covers them; a folder may be in another file
    system."""
    fs.sync_all(data_dir)
    for folder in folders:
        for base in segment_bases(fs, folder.path):
            file = fs.open(f"{folder.path}/{names.file_name(base, names.LOG)}")
            try:
                sync_file(file)
            finally:
                file.close()
        sync_folder(fs, folder.path)


def _leave_out(fs: FileSystem, path: str, partitions: Collection[TopicPartition]) -> None:
    offsets = read_offsets(fs, path)
    if not offsets.keys().isdisjoint(partitions):
        fs.write_file_atomically(path, encode_offsets({tp: offsets[tp] for tp in offsets if tp not in partitions}))


def _merge(fs: FileSystem, path: str, offsets: dict[TopicPartition, int]) -> None:
    fs.write_file_atomically(path, encode_offsets({**read_offsets(fs, path), **offsets}))
