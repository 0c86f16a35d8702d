"""The data folder as a whole: who owns it, and what is in it when a broker starts. Blocking functions.

lock            .lock is held by one process at a time (Kafka's kind of lock)
other versions  files of theirs may hold what the logs do not have yet: the folder is refused
identity        meta.properties: another cluster's or node's folder is refused
clean marker    .kafka_cleanshutdown is removed, durably, before anything else is done
failed sync     .sync_failed says that the page cache must not be believed; it goes when recovery is done. It
                need not be durable: a power cut takes the page cache too
folders         of known partitions are loaded; others are left alone or set aside, never deleted
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headpond.model import TopicId, TopicPartition
from headpond.ports import File, FileSystem
from headpond.storage.errors import DataFolderForeign, DataFolderInUse, DataFolderUnusable
from headpond.storage.folder import names
from headpond.storage.folder.checkpoint_files import read_offsets
from headpond.storage.folder.names import BadFile, FolderIdentity

_log = logging.getLogger(__name__)


class StrayFolder(NamedTuple):
    """A partition's folder that the metadata store does not know."""

    name: str
    tp: TopicPartition
    topic_id: TopicId | None


@dataclass(slots=True)
class Contents:
    """What was found at start."""

    is_clean: bool = False
    sync_failed: bool = False  # the former process ended so: memory may hold what the disk never got
    partitions: list[TopicPartition] = field(default_factory=list)  # known, with a folder
    strays: list[StrayFolder] = field(default_factory=list)
    going: list[str] = field(default_factory=list)  # -delete folders
    recovery_points: dict[TopicPartition, int] = field(default_factory=dict)
    log_starts: dict[TopicPartition, int] = field(default_factory=dict)
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    cleaned_offsets: dict[TopicPartition, int] = field(default_factory=dict)


def take(fs: FileSystem, data_dir: str) -> tuple[File, FolderIdentity | None]:
    """Lock the folder (made if missing) and read whose it is; None: it is new."""
    _make_durably(fs, data_dir)
    lock = fs.lock(f"{data_dir}/{names.LOCK}")
    if lock is None:
        raise DataFolderInUse(data_dir)
    try:
        return lock, whose(fs, data_dir)
    except BaseException:
        lock.close()
        raise


def whose(fs: FileSystem, data_dir: str) -> FolderIdentity | None:
    """Whose the folder is; None: it is new. Raises ``DataFolderUnusable`` if this version must not touch it. Nothing is
    changed."""
    _refuse_other_versions(fs, data_dir)
    path = f"{data_dir}/{names.META_PROPERTIES}"
    if not fs.exists(path):
        return None
    try:
        return names.decode_meta_properties(fs.read_file(path))
    except BadFile as error:
        raise DataFolderUnusable(f"the data folder {data_dir} can't be used: {error}") from error


def _refuse_other_versions(fs: FileSystem, data_dir: str) -> None:
    for name in fs.list_dir(data_dir):
        is_unknown = name.endswith(names.OURS_IN_OTHER_VERSIONS) and name not in names.OURS
        if is_unknown or (name in names.JOURNALS and _is_foreign_journal(fs, f"{data_dir}/{name}")):
            raise DataFolderUnusable(
                f"the data folder {data_dir} holds {name}, a file of another version of this program, which may hold "
                "what is in no log yet: start that version once more and stop it, or move the file away"
            )


def _is_foreign_journal(fs: FileSystem, path: str) -> bool:
    """Of another format. A power cut may leave anything else of a first frame: that was never acknowledged."""
    file = fs.open(path, writable=False)
    try:
        start = file.read(0, min(file.size(), len(names.JOURNAL_MAGIC)))
    finally:
        file.close()
    return start != names.JOURNAL_MAGIC and start[:-1] == names.JOURNAL_MAGIC[:-1] and start[-1:].isdigit()


def _make_durably(fs: FileSystem, data_dir: str) -> None:
    """Also the names of new folders above it have to survive a power cut, or everything below them is gone."""
    missing = [data_dir]
    while (parent := _parent(missing[-1])) != missing[-1] and not fs.exists(parent):
        missing.append(parent)
    for path in (data_dir, parent):
        if fs.exists(path) and not fs.is_dir(path):
            why = f"{path} is a file, and a folder is wanted"
            raise DataFolderUnusable(f"the data folder {data_dir} can't be used: {why}")
    fs.make_dirs(data_dir)
    for path in reversed(missing):
        try:
            fs.sync_dir(_parent(path))
        except PermissionError:
            pass  # not ours to open: then it was not us who made the folder in it


def _parent(path: str) -> str:
    above, slash, _ = path.rstrip("/").rpartition("/")
    return above or ("/" if slash else ".")


def check_identity(data_dir: str, found: FolderIdentity, *, cluster_id: str, node_id: int) -> None:
    if found.cluster_id != cluster_id:
        raise DataFolderForeign(
            f"the data folder {data_dir} belongs to cluster {found.cluster_id}, this broker to {cluster_id}"
        )
    if found.node_id != node_id:
        raise DataFolderForeign(f"the data folder {data_dir} belongs to node {found.node_id}, this is node {node_id}")


def write_identity(fs: FileSystem, data_dir: str, identity: FolderIdentity) -> None:
    fs.write_file_atomically(f"{data_dir}/{names.META_PROPERTIES}", names.encode_meta_properties(identity))


def look(fs: FileSystem, data_dir: str, known: Mapping[TopicPartition, TopicId], unique: list[bytes]) -> Contents:
    """Read the checkpoints and the clean marker, and sort the folders. ``unique``: 16 bytes for each folder that may
    have to be renamed, at least one per known partition."""
    sync_failed = fs.exists(f"{data_dir}/{names.SYNC_FAILED}")
    contents = Contents(
        is_clean=_take_clean_marker(fs, data_dir) and not sync_failed,
        sync_failed=sync_failed,
        recovery_points=read_offsets(fs, f"{data_dir}/{names.RECOVERY_POINTS}"),
        log_starts=read_offsets(fs, f"{data_dir}/{names.LOG_STARTS}"),
        high_watermarks=read_offsets(fs, f"{data_dir}/{names.HIGH_WATERMARKS}"),
        cleaned_offsets=read_offsets(fs, f"{data_dir}/{names.CLEANED_OFFSETS}"),
    )
    renamed = 0
    for name in fs.list_dir(data_dir):
        path = f"{data_dir}/{name}"
        if name.endswith(names.DELETE_FOLDER) and "." in name and fs.is_dir(path):
            contents.going.append(path)
            continue
        tp = names.parse_folder_name(name)
        if tp is None or not fs.is_dir(path):
            continue
        topic_id = _topic_id_of(fs, path)
        if tp not in known:
            _log.warning("%s belongs to no partition that the metadata store knows: left alone", path)
            contents.strays.append(StrayFolder(name, tp, topic_id))
        elif topic_id is not None and topic_id != known[tp]:
            aside = names.renamed_folder(tp, unique[renamed], names.STRAY_FOLDER)
            renamed += 1
            _log.warning("%s belongs to another topic of that name: set aside as %s", path, aside)
            fs.rename(path, f"{data_dir}/{aside}")
            contents.strays.append(StrayFolder(aside, tp, topic_id))
        else:
            contents.partitions.append(tp)
    fs.sync_dir(data_dir)
    return contents


def partitions_with_data(fs: FileSystem, data_dir: str) -> list[TopicPartition]:
    """The partitions whose folders hold files of Kafka's, sorted. A folder that is only called like one does not count,
    nor does one that is set aside or about to be removed."""
    found = []
    for name in fs.list_dir(data_dir):
        tp, path = names.parse_folder_name(name), f"{data_dir}/{name}"
        if tp is None or not fs.is_dir(path):
            continue
        if any(file.endswith(names.LOG) or file == names.PARTITION_METADATA for file in fs.list_dir(path)):
            found.append(tp)
    return sorted(found)


def _take_clean_marker(fs: FileSystem, data_dir: str) -> bool:
    path = f"{data_dir}/{names.CLEAN_SHUTDOWN}"
    if not fs.exists(path):
        return False
    is_clean = names.decode_clean_shutdown(fs.read_file(path)) is not None
    fs.remove(path)
    fs.sync_dir(data_dir)
    return is_clean


def write_clean_marker(fs: FileSystem, data_dir: str, broker_epoch: int) -> None:
    fs.write_file_atomically(f"{data_dir}/{names.CLEAN_SHUTDOWN}", names.encode_clean_shutdown(broker_epoch))


def _topic_id_of(fs: FileSystem, path: str) -> TopicId | None:
    try:
        return names.decode_partition_metadata(fs.read_file(f"{path}/{names.PARTITION_METADATA}"))
    except (FileNotFoundError, BadFile):
        return None


def move_away(fs: FileSystem, data_dir: str, moves: Sequence[tuple[str, str]]) -> list[str | OSError | None]:
    """Rename partitions' folders (name, new name), durably; returns their new paths. None: there is no such folder."""
    moved = [_move(fs, f"{data_dir}/{name}", f"{data_dir}/{new_name}") for name, new_name in moves]
    if any(isinstance(each, str) for each in moved):
        try:
            fs.sync_dir(data_dir)
        except OSError as error:
            return [error if isinstance(each, str) else each for each in moved]
    return moved


def _move(fs: FileSystem, path: str, new_path: str) -> str | OSError | None:
    try:
        if not fs.exists(path):
            return None
        fs.rename(path, new_path)
    except OSError as error:
        return error
    return new_path
