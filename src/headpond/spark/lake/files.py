"""What a task writes: one Parquet file per date, more where they get large, each new or the next form of a small one.

Files stay in the staging folder, whole and synced; the driver makes them part of the lake, or nobody does.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from headpond.ports import FileSystem
from headpond.runtime.random import SystemRandom
from headpond.spark.codec import schema_of
from headpond.spark.lake import layout
from headpond.spark.lake.dates import split_by_date
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.state import LakeFile, Move, Span

COLUMNS = ("key", "value", "headers", "partition", "offset", "timestamp", "timestampType")
"""The topic is in the path, as every reader of partitioned tables expects it."""
SCHEMA = schema_of(COLUMNS)

ROW_GROUP_BYTES = 16 * 1024 * 1024
BUFFERED_BYTES_MAX = 64 * 1024 * 1024
"""Of all files of a task together."""
OPEN_FILES_MAX = 100
"""A task whose records lie on more days closes the file that it has used least lately."""

GZIP_LEVEL, ZSTD_LEVEL = 6, 1


class Growing(msgspec.Struct, frozen=True):
    """A file of the lake that a task may write anew, longer."""

    path: str
    file: LakeFile


class FileTarget(msgspec.Struct, frozen=True):
    lake: str
    topic: str
    staging: str
    """The folder, in the lake."""
    version: int
    task: int
    compression: str
    file_size_bytes: int
    growing: dict[str, Growing]
    """By date."""


class Written(msgspec.Struct, frozen=True):
    move: Move
    file: LakeFile
    new_records: int


class DateFiles:
    """``add`` rows of one partition, in order of offsets, as often as you like; ``close`` gives what was written."""

    def __init__(self, target: FileTarget, fs: FileSystem) -> None:
        self._target = target
        self._fs = fs
        self._growing = dict(target.growing)
        self._open: dict[str, _OpenFile] = {}  # the last used at the end
        self._written: list[Written] = []

    def add(self, rows: pa.RecordBatch) -> None:
        for date, part in split_by_date(rows):
            file = self._open.pop(date, None) or self._opened(date)
            self._open[date] = file
            file.add(part)
            if file.is_full:
                self._close(date)
        while sum(file.buffered_bytes for file in self._open.values()) > BUFFERED_BYTES_MAX:
            max(self._open.values(), key=lambda file: file.buffered_bytes).flush()

    def close(self) -> list[Written]:
        for date in list(self._open):
            self._close(date)
        return self._written

    def _opened(self, date: str) -> _OpenFile:
        if len(self._open) >= OPEN_FILES_MAX:
            self._close(next(iter(self._open)))
        return _OpenFile(self._target, date, self._growing.pop(date, None))

    def _close(self, date: str) -> None:
        self._written.append(self._open.pop(date).close(self._fs))


class _OpenFile:
    def __init__(self, target: FileTarget, date: str, growing: Growing | None) -> None:
        mark = SystemRandom().random_bytes(8).hex()
        self._target = target
        self._staged = f"{target.staging}/{mark}{layout.STAGED}"
        self._final = (
            layout.data_file(target.topic, date, target.version, target.task, mark[:8])
            if growing is None
            else growing.path
        )
        self._sink = pa.OSFile(f"{target.lake}/{self._staged}", "wb")
        self._writer = pq.ParquetWriter(
            self._sink,
            SCHEMA,
            compression=target.compression,
            compression_level={"zstd": ZSTD_LEVEL, "gzip": GZIP_LEVEL}.get(target.compression),
            use_dictionary=["partition", "timestampType"],
            column_encoding={"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
            write_statistics=["partition", "offset", "timestamp"],
        )
        self._chunks: list[pa.RecordBatch] = []
        self.buffered_bytes = 0
        self._records = self._new_records = 0
        self._spans: dict[int, Span] = {}
        if growing is not None:
            self._copy(growing)

    def _copy(self, growing: Growing) -> None:
        copied = 0
        for rows in rows_of(self._target.lake, growing.path):
            self._take(rows.cast(SCHEMA))
            copied += rows.num_rows
        if copied != growing.file.records:  # it would be replaced, and what is gone would be gone for good
            raise LakeError(
                f"{self._target.lake}/{growing.path} has {copied} records, and the lake says {growing.file.records}: "
                "was it changed?"
            )
        self._records = growing.file.records
        self._spans = dict(growing.file.spans)

    @property
    def is_full(self) -> bool:
        return self._sink.tell() >= self._target.file_size_bytes

    def add(self, rows: pa.RecordBatch) -> None:
        self._take(rows)
        self._records += rows.num_rows
        self._new_records += rows.num_rows
        partition, offsets = rows.column("partition")[0].as_py(), rows.column("offset")
        first, end = offsets[0].as_py(), offsets[-1].as_py() + 1
        known = self._spans.get(partition, Span(first, end))
        self._spans[partition] = Span(min(known.from_offset, first), max(known.end_offset, end))

    def _take(self, rows: pa.RecordBatch) -> None:
        self._chunks.append(rows)
        self.buffered_bytes += rows.nbytes
        if self.buffered_bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._chunks:
            table = pa.Table.from_batches(self._chunks, SCHEMA)
            self._writer.write_table(table, row_group_size=table.num_rows)
            self._chunks, self.buffered_bytes = [], 0

    def close(self, fs: FileSystem) -> Written:
        self.flush()
        self._writer.close()
        self._sink.close()
        path = f"{self._target.lake}/{self._staged}"
        file = fs.open(path)
        try:
            file.sync()
            size_bytes = file.size()
        finally:
            file.close()
        return Written(
            Move(self._staged, self._final), LakeFile(size_bytes, self._records, self._spans), self._new_records
        )


def rows_of(lake: str, path: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a file of the lake, in the order in which they stand in it."""
    try:
        opened = pq.ParquetFile(f"{lake}/{path}")
    except FileNotFoundError:
        raise LakeError(f"{lake}/{path} is missing, and the lake says that it is there: was it deleted?") from None
    with opened as file:
        yield from file.iter_batches(columns=columns)
