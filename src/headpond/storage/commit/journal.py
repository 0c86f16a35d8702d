"""The journal: one file that makes small appends to many logs durable with one sync.

To sync many logs that were each appended to a little is dear: every one of them has a page to be written and a length
to be noted. So while many are, what is appended to them is noted here too, and the sync that a client waits for is the
journal's. The logs' own files follow with the next checkpoint round, which then empties the journal.

    append -> the log's file (page cache), and ``note``
    commit -> ``write`` puts what was noted into a frame of its own; its sync makes all of it durable
    round  -> ``rotate`` (what follows goes to the other file) -> sync of everything -> ``emptied``

    frame: magic, size, CRC-32C of what follows | topic id, partition, batch | topic id, partition, batch | ...

Recovery    Each log is recovered from its own files first, which gives a prefix of what was appended to it. Batches
            from here that continue the prefix are appended again, by their offsets: whatever the log has is passed
            over, so that entries which are no longer needed do no harm. Only a log that is cut could get back what it
            has lost: before that its entries go, durably. And a start that moves behind the end of a log's own files
            would hide what is to continue them: before that the files are synced (``PartitionLog``).
Crash       A frame that is not whole ends its file: nobody was told that it is durable.
Promise     While a log is not ``is_unnoted``, everything in it is durable by its own files up to some offset and noted
            here from there on, in a frame or for the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from headpond.model import TopicId
from headpond.ports import File, FileSystem, Workers
from headpond.protocol.records.checksum import crc32c
from headpond.protocol.records.header import HEADER_BYTES, LOG_OVERHEAD_BYTES, read_header
from headpond.storage.folder import names
from headpond.storage.log.segment_files import SyncFailed, sync_file, sync_folder

if TYPE_CHECKING:
    from headpond.storage.log.log import PartitionLog
    from headpond.storage.log.segment import Segment

_log = logging.getLogger(__name__)

NOTED_BATCH_BYTES_MAX = 16 * 1024
"""A larger batch is not noted: to write it twice costs more than the sync of its file."""
FRAME_BYTES_MAX = 1024 * 1024
"""Of what is noted and not written; no more is kept in memory, nor written at once by the loop."""
FILE_BYTES_MAX = 32 * 1024 * 1024
"""A file that has grown so far, because checkpoint rounds are slow or fail, takes no more: logs are synced as ever."""
MANY_LOGS = 8
"""When no commit since the last round was of so many logs, the journal is turned off."""

_FRAME = Struct(">4sII")  # magic, bytes that follow, their CRC-32C
_ENTRY = Struct(">16si")  # topic id, partition; then the batch, which knows its size
_entry = _ENTRY.pack


class Journal:
    """The writing side, on the loop. Off until it is known that many logs are dirty at once."""

    def __init__(
        self, fs: FileSystem, workers: Workers, data_dir: str, on_sync_failed: Callable[[BaseException], None]
    ) -> None:
        self.is_on = False
        self.is_syncing = False  # a frame's sync is under way
        self.many_logs = MANY_LOGS
        self._fs = fs
        self._workers = workers
        self._data_dir = data_dir
        self._on_sync_failed = on_sync_failed
        self._files: tuple[JournalFile, ...] = ()  # the first is written to
        self._is_opening = False
        self._is_allowed = False  # until the start has read what a crash left; nor once it is closed, or can't be had
        self._rests = False  # until the next round
        self._most_logs = 0  # of one frame, since the last round
        self._noted = bytearray(_FRAME.size)
        self._noted_logs: dict[PartitionLog, None] = {}

    # --- on and off

    def allow(self) -> None:
        """What a crash left is part of the logs again."""
        self._is_allowed = True

    def turn_on(self) -> None:
        """A sync of everything has just begun. The first time there are no files yet: then it is for a later one."""
        if self._rests or not self._is_allowed:
            return
        if self._files:
            self.is_on = True
        elif not self._is_opening:
            self._is_opening = True
            self._workers.submit(lambda: create(self._fs, self._data_dir), self._opened)

    def _opened(self, files: list[File] | None, error: BaseException | None) -> None:
        self._is_opening = False
        if files is None:
            self._is_allowed = False
            if isinstance(error, SyncFailed):
                self._on_sync_failed(error)
            else:
                _log.warning("there is no journal, logs are synced by their own files: %s", error)
        elif self._is_allowed:
            self._files = tuple(JournalFile(file) for file in files)
        else:
            close_all(files)

    def turn_off(self) -> None:
        """What is noted and not written is for the logs' own syncs. On again after the next round at the earliest."""
        self.is_on, self._rests = False, True
        for log in self._noted_logs:
            log.is_unnoted = True
        self._start_frame()

    # --- commits

    def note(self, log: PartitionLog, batch: memoryview) -> None:
        noted = self._noted
        if len(noted) > FRAME_BYTES_MAX:
            log.is_unnoted = True
            return
        noted += _entry(log.topic_id, log.tp.partition)
        noted += batch
        self._noted_logs[log] = None

    def write(self) -> File | None:
        """Write what is noted; returns the file to be synced. None: it can't be, and the journal is off."""
        file, frame = self._files[0], self._noted
        _FRAME.pack_into(
            frame, 0, names.JOURNAL_MAGIC, len(frame) - _FRAME.size, crc32c(memoryview(frame)[_FRAME.size :])
        )
        try:
            if file.is_torn or file.size_bytes + len(frame) > FILE_BYTES_MAX:
                raise OSError("the journal is full")
            file.file.write(frame)
        except OSError as error:
            _log.debug("logs are synced one by one until the next round: %s", error)
            file.is_torn = True  # frames behind a broken one are not found
            self.turn_off()
            return None
        file.size_bytes += len(frame)
        file.logs.update(self._noted_logs)
        self._most_logs = max(self._most_logs, len(self._noted_logs))
        self._start_frame()
        return file.file

    def _start_frame(self) -> None:
        self._noted, self._noted_logs = bytearray(_FRAME.size), {}

    def has_entries_of(self, log: PartitionLog) -> bool:
        """Perhaps needed no longer."""
        return log in self._noted_logs or any(log in file.logs for file in self._files)

    def forget_noted(self, log: PartitionLog) -> None:
        """What is noted of it must not be written any more."""
        if log in self._noted_logs:
            self.turn_off()

    # --- rounds

    def rotate(self) -> JournalFile | None:
        """A round begins. The file that may be emptied when a sync of everything, which begins after this, is done."""
        if self.is_on and self._most_logs < self.many_logs:
            self.turn_off()
        self._rests = False
        self._most_logs = 0
        if not any(file.has_content for file in self._files):
            return None
        active, other = self._files
        if other.has_content:  # a former round did not come to its end
            active = other
        else:
            self._files = other, active
        active.finished = {log: [each for each in log.journaled if each is not log.active] for log in active.logs}
        return active

    def emptied(self, file: JournalFile) -> None:
        """That file holds nothing any more, and needs not: the logs' own files do."""
        for log, segments in file.finished.items():
            if log in self._noted_logs or any(log in each.logs for each in self._files if each is not file):
                log.journaled = [segment for segment in log.journaled if segment not in segments]
            else:
                log.journaled.clear()
        file.size_bytes, file.is_torn, file.logs, file.finished = 0, False, {}, {}

    def close(self) -> None:
        """Nothing is appended any more."""
        self.is_on = self._is_allowed = False
        files, self._files = self._files, ()
        close_all([file.file for file in files])


class JournalFile:
    __slots__ = ("file", "finished", "is_torn", "logs", "size_bytes")

    def __init__(self, file: File) -> None:
        self.file = file
        self.size_bytes = 0
        self.is_torn = False  # a write failed, or there is no more room: nothing may follow
        self.logs: dict[PartitionLog, None] = {}  # with entries in it
        self.finished: dict[
            PartitionLog, list[Segment]
        ] = {}  # when its round began: nothing was appended to them since

    @property
    def has_content(self) -> bool:
        return self.size_bytes > 0 or self.is_torn

    def empty(self) -> None:
        """Blocking. Durably: a log that is cut later must not get back from here what it has lost."""
        self.file.truncate(0)
        sync_file(self.file)


# --- blocking: files


def create(fs: FileSystem, data_dir: str) -> list[File]:
    """Both files, empty, their names durable."""
    files: list[File] = []
    try:
        for name in names.JOURNALS:
            files.append(fs.open(f"{data_dir}/{name}", create=True))
            files[-1].truncate(0)
            sync_file(files[-1])
        sync_folder(fs, data_dir)
    except BaseException:
        close_all(files)
        raise
    return files


def close_all(files: Iterable[File]) -> None:
    for file in files:
        file.close()


def is_there(fs: FileSystem, data_dir: str) -> bool:
    return any(fs.exists(f"{data_dir}/{name}") for name in names.JOURNALS)


def set_aside(fs: FileSystem, data_dir: str) -> None:
    """It has what is nobody's now, and may be somebody's again."""
    for name in names.JOURNALS:
        if fs.exists(f"{data_dir}/{name}"):
            fs.rename(f"{data_dir}/{name}", f"{data_dir}/{name}.aside")
    sync_folder(fs, data_dir)


def remove(fs: FileSystem, data_dir: str) -> None:
    """Durably. Only when every log is durable by its own files."""
    for name in names.JOURNALS:
        fs.remove(f"{data_dir}/{name}")
    sync_folder(fs, data_dir)


class Entry(NamedTuple):
    base_offset: int
    batch: bytes


def read(fs: FileSystem, data_dir: str) -> dict[tuple[TopicId, int], list[Entry]]:
    """What a crash left, by topic id and partition, in the order of the offsets."""
    found: dict[tuple[TopicId, int], dict[int, bytes]] = {}
    for name in names.JOURNALS:
        path = f"{data_dir}/{name}"
        if fs.exists(path):
            for topic_id, partition, batch in entries(fs.read_file(path)):
                found.setdefault((topic_id, partition), {})[read_header(batch).base_offset] = batch
    return {
        log: [Entry(base_offset, batches[base_offset]) for base_offset in sorted(batches)]
        for log, batches in found.items()
    }


def entries(content: bytes) -> Iterator[tuple[TopicId, int, bytes]]:
    """Of all whole frames of one file."""
    position = 0
    while len(content) - position > _FRAME.size:
        magic, size_bytes, crc = _FRAME.unpack_from(content, position)
        position += _FRAME.size
        end = position + size_bytes
        if magic != names.JOURNAL_MAGIC or end > len(content) or crc32c(memoryview(content)[position:end]) != crc:
            return
        while end - position >= _ENTRY.size + HEADER_BYTES:
            topic_id, partition = _ENTRY.unpack_from(content, position)
            position += _ENTRY.size
            size_bytes = LOG_OVERHEAD_BYTES + read_header(content, position).batch_length
            yield TopicId(topic_id), partition, content[position : position + size_bytes]
            position += size_bytes
        position = end
