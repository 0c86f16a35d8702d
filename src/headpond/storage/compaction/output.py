"""The files of a cleaned segment while it is made: ``<base offset>.log.cleaned`` and its indexes. Blocking.

Nothing of it counts before ``swap`` renames it; a crash leaves files that the next start removes. Data is synced as it
is written, a few megabytes at a time: one large sync at the end would hold up the syncs that producers wait for.
"""

from __future__ import annotations

from headpond.ports import Buffer, File, FileSystem
from headpond.storage.folder import names
from headpond.storage.log.segment import Segment
from headpond.storage.log.segment_files import sync_file, sync_folder

WRITE_BYTES = 1024 * 1024
SYNC_BYTES = 8 * 1024 * 1024


class CleanedFiles:
    def __init__(self, fs: FileSystem, path: str, base_offset: int, interval_bytes: int) -> None:
        self._fs = fs
        self._path = path
        self._interval_bytes = interval_bytes
        self._file = self._create(base_offset, names.LOG)
        self._waiting: list[Buffer] = []
        self._waiting_bytes = 0
        self._unsynced_bytes = 0
        self.segment = Segment(base_offset, created_ms=0)
        self.segment.start(self._file)

    def add(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        self.segment.appended(len(batch), last_offset, max_timestamp, self._interval_bytes)
        self._waiting.append(batch)
        self._waiting_bytes += len(batch)
        if self._waiting_bytes >= WRITE_BYTES:
            self._write()

    def finish(self, aborted: bytes) -> Segment:
        """Complete and durable under its ``.cleaned`` names. ``aborted``: the content of its transaction index."""
        self._write()
        sync_file(self._file)
        self._file.close()
        segment = self.segment
        segment.finish_time_index()
        assert segment.index is not None and segment.time_index is not None
        contents = [(names.INDEX, segment.index.encode()), (names.TIME_INDEX, segment.time_index.encode())]
        if aborted:
            contents.append((names.TXN_INDEX, aborted))
        for suffix, content in contents:
            file = self._create(segment.base_offset, suffix)
            try:
                file.write(content)
                sync_file(file)
            finally:
                file.close()
        sync_folder(self._fs, self._path)
        return segment

    def abandon(self) -> None:
        """Closed; the files stay for whoever removes leftovers. Closing twice does nothing."""
        self._file.close()

    def _create(self, base_offset: int, suffix: str) -> File:
        path = f"{self._path}/{names.file_name(base_offset, suffix)}{names.CLEANED}"
        file = self._fs.open(path, create=True)
        if file.size():
            file.truncate(0)
        return file

    def _write(self) -> None:
        if not self._waiting:
            return
        self._file.write(b"".join(self._waiting))
        self._unsynced_bytes += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0
        if self._unsynced_bytes >= SYNC_BYTES:
            sync_file(self._file)
            self._unsynced_bytes = 0


def remove_unfinished(fs: FileSystem, path: str) -> None:
    """What a cleaning that was given up has left in a partition's folder."""
    if not fs.is_dir(path):
        return  # the partition was deleted meanwhile
    for name in fs.list_dir(path):
        if name.endswith(names.CLEANED):
            fs.remove(f"{path}/{name}")
