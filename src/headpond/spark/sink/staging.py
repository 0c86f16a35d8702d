"""Finished batches on their way from the tasks to the driver: a file per task, in a folder per query.

    <stagingDir>/<query>/<micro-batch>-<task>-<chance>.batches        frames: target u32, size u32, the batch

A task's file has a name that no other attempt has, so that attempts of the same task can't touch each other's; those
that no commit message names are never read. A file that is not there, shorter or damaged fails the commit.

A crash     leaves files behind. They hold nothing that is needed: the micro-batch is done again from its start. They
            are swept when the query commits its next micro-batch, and those of batch writes a week later.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs as arrow_fs

from headpond.model import TopicPartition
from headpond.ports import Clock, Random
from headpond.protocol.records.checksum import crc32c
from headpond.spark.sink.addresses import shown
from headpond.spark.sink.errors import SinkFailed

_log = logging.getLogger("headpond.spark")

SUFFIX = ".batches"
BUFFER_BYTES = 1024 * 1024
ONE_WRITE = "write-"
"""The folders of batch writes without an application's id begin so: nobody comes back for them."""
ORPHAN_AGE_MS = 7 * 24 * 3_600_000
ARROWS_SCHEME = {"s3a": "s3", "s3n": "s3"}
"""What Hadoop and Arrow call differently."""

_frame = struct.Struct(">II")


class StagedFile(NamedTuple):
    """What a commit message says of a task's file."""

    path: str
    size_bytes: int
    checksum: int
    targets: tuple[TopicPartition, ...]
    """In the order of the numbers that the frames use."""


class StagedBatch(NamedTuple):
    tp: TopicPartition
    data: bytearray


class Folder:
    """The staging folder of one query."""

    def __init__(self, location: str, name: str) -> None:
        self._shown = shown(location)
        self._fs, self._base = _opened(location)
        self._path = f"{self._base}/{name}"
        # Elsewhere each read is a request; here a buffer is only one more copy.
        self._read_buffer_bytes = None if isinstance(self._fs, arrow_fs.LocalFileSystem) else BUFFER_BYTES

    def new_file(self, number: int, task: int, random: Random) -> StagingWriter:
        path = f"{self._path}/{number}-{task}-{random.random_bytes(8).hex()}{SUFFIX}"
        try:
            self._fs.create_dir(self._path, recursive=True)
            stream = self._fs.open_output_stream(path, buffer_size=BUFFER_BYTES)
        except (OSError, pa.ArrowException) as error:
            raise SinkFailed(f"the staging folder {self._shown} can't be written to: {error}") from error
        return StagingWriter(path, stream, lambda: self._delete_file(path))

    def check(self, files: Sequence[StagedFile]) -> StagedFile | None:
        """The first that is not there; ``SinkFailed`` where one is not whole."""
        try:
            infos = self._fs.get_file_info([file.path for file in files])
        except (OSError, pa.ArrowException) as error:
            raise SinkFailed(f"nothing was written: the staging folder can't be read: {error}") from error
        for file, found in zip(files, infos, strict=True):
            if found.type != arrow_fs.FileType.File:
                return file
            if found.size is not None and found.size != file.size_bytes:
                raise SinkFailed(
                    f"nothing was written: {file.path} has {found.size} bytes and a task has staged {file.size_bytes}"
                )
        return None

    def read(self, file: StagedFile) -> Iterator[StagedBatch]:
        """In the order in which they were staged. ``SinkFailed`` at the latest when the end is reached, if anything is
        not as it was written."""
        checksum = size_bytes = 0
        try:
            with self._fs.open_input_stream(file.path, buffer_size=self._read_buffer_bytes) as stream:
                while head := stream.read(_frame.size):
                    target, batch_bytes = _frame.unpack(head)
                    data = bytearray(batch_bytes)
                    if stream.readinto(data) != batch_bytes:
                        raise OSError("it ends in the middle of a batch")
                    checksum = crc32c(data, crc32c(head, checksum))
                    size_bytes += len(head) + len(data)
                    yield StagedBatch(file.targets[target], data)
        except (OSError, pa.ArrowException, struct.error, IndexError) as error:
            raise SinkFailed(f"the staged file {file.path} can't be read: {error}") from error
        if (checksum, size_bytes) != (file.checksum, file.size_bytes):
            raise SinkFailed(f"the staged file {file.path} is damaged: its checksum is not that of what was staged")

    # ---- clearing up: never a reason to fail

    def delete(self, files: Sequence[StagedFile]) -> None:
        for file in files:
            self._delete_file(file.path)

    def sweep(self, up_to_number: int) -> None:
        """Whatever attempts of micro-batches up to this one have left."""
        for path, name in self._files():
            number = name.partition("-")[0]
            if name.endswith(SUFFIX) and number.isdigit() and int(number) <= up_to_number:
                self._delete_file(path)

    def remove(self) -> None:
        """The whole folder."""
        self._delete_folder(self._path)

    def sweep_old_writes(self, clock: Clock) -> None:
        """Folders of batch writes whose driver died long ago."""
        try:
            found = self._fs.get_file_info(arrow_fs.FileSelector(self._base, allow_not_found=True))
        except (OSError, pa.ArrowException):
            return
        before_ns = (clock.now_ms() - ORPHAN_AGE_MS) * 1_000_000
        for one in found:
            is_old = one.mtime_ns is not None and one.mtime_ns < before_ns
            if one.type == arrow_fs.FileType.Directory and one.base_name.startswith(ONE_WRITE) and is_old:
                self._delete_folder(one.path)

    def _files(self) -> list[tuple[str, str]]:
        try:
            found = self._fs.get_file_info(arrow_fs.FileSelector(self._path, allow_not_found=True))
        except (OSError, pa.ArrowException) as error:
            _log.warning("the staging folder %s can't be listed: %s", self._path, error)
            return []
        return [(one.path, one.base_name) for one in found if one.type == arrow_fs.FileType.File]

    def _delete_file(self, path: str) -> None:
        try:
            self._fs.delete_file(path)
        except FileNotFoundError:
            pass
        except (OSError, pa.ArrowException) as error:
            _log.warning("the staged file %s can't be deleted: %s", path, error)

    def _delete_folder(self, path: str) -> None:
        try:
            self._fs.delete_dir(path)
        except FileNotFoundError:
            pass
        except (OSError, pa.ArrowException) as error:
            _log.warning("the staging folder %s can't be deleted: %s", path, error)


class StagingWriter:
    """One file, from its first batch until it is closed."""

    def __init__(self, path: str, stream: pa.NativeFile, delete: Callable[[], None]) -> None:
        self._path = path
        self._stream = stream
        self._delete = delete
        self._numbers: dict[TopicPartition, int] = {}
        self._checksum = 0
        self._size_bytes = 0

    def append(self, tp: TopicPartition, data: bytearray) -> None:
        head = _frame.pack(self._numbers.setdefault(tp, len(self._numbers)), len(data))
        self._checksum = crc32c(data, crc32c(head, self._checksum))
        self._size_bytes += len(head) + len(data)
        self._stream.write(head)
        self._stream.write(data)

    def finish(self) -> StagedFile:
        """From here on the driver can read it."""
        self._stream.close()
        return StagedFile(self._path, self._size_bytes, self._checksum, tuple(self._numbers))

    def discard(self) -> None:
        """Of a task that fails: it has no message, so that nobody else would know of the file."""
        try:
            self._stream.close()
        except (OSError, pa.ArrowException):
            pass
        self._delete()


def _opened(location: str) -> tuple[arrow_fs.FileSystem, str]:
    if location.startswith("/"):
        return arrow_fs.LocalFileSystem(), location.rstrip("/")
    scheme, _, rest = location.partition(":")
    uri = f"{ARROWS_SCHEME.get(scheme.lower(), scheme)}:{rest}"
    try:
        system, path = arrow_fs.FileSystem.from_uri(uri)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise SinkFailed(
            f"the staging folder {shown(location)} can't be used ({type(error).__name__}): give the option stagingDir, "
            "a path or a URI that pyarrow.fs knows"
        ) from None
    return system, path.rstrip("/")
