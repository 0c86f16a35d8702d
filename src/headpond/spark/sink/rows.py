"""Chunks of rows to batches, each of one partition, ready but for the producer's fields.

Where a row goes    the option topic, else its column topic (null: ``WrongRow``); its column partition, where it has one
                    (one that does not exist: ``WrongRow``), else by its key as Kafka's default partitioner does. Rows
                    without a key stay together in one partition per chunk, the next one for the next chunk: where the
                    first chunk goes depends on task and micro-batch only, so that a repeated task does the same.
How large           As many records as fit into ``BATCH_BYTES``, or fewer where the topic allows less. A record that is
                    larger than the topic allows (``max.message.bytes``, whatever a codec would make of it):
                    ``WrongRow``.
Order               Rows of one task that go to one partition stay in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headpond.model import TopicPartition
from headpond.protocol.records.header import HEADER_BYTES
from headpond.spark.codec import CannotEncode, EncodedBatch, RecordColumns, encode, partition_of_keys
from headpond.spark.sink.columns import HEADERS, KEY, PARTITION, TIMESTAMP, TOPIC, VALUE
from headpond.spark.sink.errors import WrongRow, WrongWrite
from headpond.spark.sink.options import SinkOptions
from headpond.spark.sink.targets import Target, Targets

if TYPE_CHECKING:
    from headpond.ports import Clock

Rows: TypeAlias = npt.NDArray[np.int64]

CHUNK_BYTES = 8 * 1024 * 1024
"""So many bytes of rows are partitioned and encoded at once: Spark's own pieces (10,000 rows) make small batches."""
BATCH_BYTES = 1_000_000
"""Large enough to compress and to send well; what every topic takes unless it is told otherwise."""
RECORD_OVERHEAD_BYTES_MAX = 64
HEADER_OVERHEAD_BYTES_MAX = 10


def chunks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger pieces, of about ``CHUNK_BYTES``."""
    waiting: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        waiting.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= CHUNK_BYTES:
            yield _joined(waiting)
            waiting, size_bytes = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


class RowEncoder:
    """For one task. ``turn``: where its rows without a key begin."""

    def __init__(self, options: SinkOptions, targets: Targets, clock: Clock, *, turn: int, task: int) -> None:
        self._options = options
        self._targets = targets
        self._clock = clock
        self._turn = turn
        self._task = task
        self.rows_done = 0

    def encode(self, chunk: pa.RecordBatch) -> Iterator[tuple[TopicPartition, EncodedBatch]]:
        columns = self._columns(chunk)
        wanted = self._wanted_partitions(chunk)
        for topic, rows in self._by_topic(chunk):
            target = self._targets.get(topic)
            yield from self._of_topic(columns, wanted, target, rows)
        self.rows_done += chunk.num_rows
        self._turn += 1

    # ---- the columns

    def _columns(self, chunk: pa.RecordBatch) -> RecordColumns:
        def column(name: str) -> pa.Array | None:
            index = chunk.schema.get_field_index(name)
            return chunk.column(index) if index >= 0 else None

        value = column(VALUE)
        if value is None:
            raise WrongWrite("there is no column value, which becomes the value of the records")
        try:
            return RecordColumns.of(
                key=column(KEY),
                value=value,
                headers=column(HEADERS),
                timestamp=column(TIMESTAMP),
                now_ms=self._clock.now_ms(),
                keeps_early=self._options.keeps_early_timestamps,
            )
        except CannotEncode as error:
            raise self._wrong(error) from None

    def _wanted_partitions(self, chunk: pa.RecordBatch) -> npt.NDArray[np.int32] | None:
        """-1 where the row leaves it to us; None: all do."""
        index = chunk.schema.get_field_index(PARTITION)
        if index < 0:
            return None
        column = chunk.column(index)
        if column.null_count == len(column):
            return None
        numbers: npt.NDArray[np.int32] = column.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
        negative = np.flatnonzero(numbers < 0)
        for row in negative:
            if column[int(row)].is_valid:
                raise WrongRow(f"{self._row(int(row))} has the partition {numbers[row]}: partitions count from 0")
        return numbers

    def _by_topic(self, chunk: pa.RecordBatch) -> Iterator[tuple[str, Rows | None]]:
        """(topic, its rows; None: all)"""
        if self._options.topic is not None:
            yield self._options.topic, None
            return
        index = chunk.schema.get_field_index(TOPIC)
        if index < 0:
            raise WrongWrite("where to? Give the option topic, or a column topic")
        column = chunk.column(index)
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise WrongRow(f"{self._row(row)} has no topic: its column topic is null, and there is no option topic")
        codes = column.dictionary_encode()
        numbers = codes.indices.to_numpy(zero_copy_only=False)
        names = codes.dictionary.to_pylist()
        for number in sorted(range(len(names)), key=lambda one: str(names[one])):
            if not names[number]:
                row = int(np.flatnonzero(numbers == number)[0])
                raise WrongRow(f"{self._row(row)} has an empty topic")
            yield names[number], None if len(names) == 1 else np.flatnonzero(numbers == number)

    # ---- one topic

    def _of_topic(
        self, columns: RecordColumns, wanted: npt.NDArray[np.int32] | None, target: Target, rows: Rows | None
    ) -> Iterator[tuple[TopicPartition, EncodedBatch]]:
        chosen = np.arange(columns.count) if rows is None else rows
        partitions = self._partitions(columns, wanted, target, chosen)
        batch_bytes_max = self._batch_bytes_max(columns, target, chosen)
        for partition, its_rows in _grouped(partitions, chosen, target.partitions):
            tp = TopicPartition(target.topic, partition)
            batches = encode(
                columns,
                rows=its_rows,
                batch_bytes_max=batch_bytes_max,
                compression=self._options.compression,
                level=self._options.level,
            )
            for batch in batches:
                yield tp, batch

    def _partitions(
        self, columns: RecordColumns, wanted: npt.NDArray[np.int32] | None, target: Target, rows: Rows
    ) -> npt.NDArray[np.int32]:
        """Of each of the rows."""
        keyless = self._turn % target.partitions
        if wanted is not None:
            named = wanted[rows]
            beyond = np.flatnonzero(named >= target.partitions)
            if len(beyond):
                raise WrongRow(
                    f"{self._row(int(rows[beyond[0]]))} has the partition {named[beyond[0]]}, and topic "
                    f"{target.topic} has {target.partitions}"
                )
            if named.min(initial=0) >= 0 and len(named):
                return named
        by_key = partition_of_keys(columns.key, target.partitions, keyless_partition=keyless)[rows]
        return by_key if wanted is None else np.where(named >= 0, named, by_key).astype(np.int32)

    def _batch_bytes_max(self, columns: RecordColumns, target: Target, rows: Rows) -> int:
        """Room for the largest record, if the topic allows it."""
        sizes = _sizes_bytes_max(columns)[rows]
        largest = int(sizes.max(initial=0)) + HEADER_BYTES
        if largest > target.batch_bytes_max:
            self._check_sizes(columns, target, rows[sizes + HEADER_BYTES > target.batch_bytes_max])
        return min(target.batch_bytes_max, max(BATCH_BYTES, largest))

    def _check_sizes(self, columns: RecordColumns, target: Target, rows: Rows) -> None:
        """Encodes the rows that may be too large, before any other: ``WrongRow`` for one that is."""
        if target.batch_bytes_max <= HEADER_BYTES:
            raise WrongWrite(
                f"topic {target.topic} takes no records: its max.message.bytes is {target.batch_bytes_max}"
            )
        try:
            for _ in encode(columns, rows=rows, batch_bytes_max=target.batch_bytes_max):
                pass
        except CannotEncode as error:
            row = 0 if error.row is None else error.row
            size = int(_sizes_bytes_max(columns)[row])
            raise WrongRow(
                f"{self._row(row)} takes about {size} bytes, and topic {target.topic} takes at most "
                f"{target.batch_bytes_max} (max.message.bytes)"
            ) from None

    def _row(self, row: int) -> str:
        """As the user can find it: ``spark_partition_id()``, and how many rows were before it there."""
        return f"row {self.rows_done + row} of partition {self._task} of the DataFrame"

    def _wrong(self, error: CannotEncode) -> ValueError:
        if error.row is None:
            return WrongWrite(str(error))
        return WrongRow(str(error).replace(f"row {error.row}", self._row(error.row), 1))


def _grouped(partitions: npt.NDArray[np.int32], rows: Rows, partition_count: int) -> Iterator[tuple[int, Rows]]:
    """Rows by partition, in their order."""
    # Numbers of 16 bits are sorted in linear time.
    small = partitions.astype(np.uint16) if partition_count <= 65_536 else partitions
    order = np.argsort(small, kind="stable")
    counts = np.bincount(partitions, minlength=1)
    end = 0
    for partition in np.flatnonzero(counts):
        start, end = end, end + int(counts[partition])
        yield int(partition), rows[order[start:end]]


def _sizes_bytes_max(columns: RecordColumns) -> npt.NDArray[np.int64]:
    """The most that each row's record takes."""
    sizes = np.maximum(columns.key.sizes, 0) + np.maximum(columns.value.sizes, 0) + RECORD_OVERHEAD_BYTES_MAX
    headers = columns.headers
    if len(headers.names.sizes):
        entry_sizes = (
            np.maximum(headers.names.sizes, 0) + np.maximum(headers.values.sizes, 0) + HEADER_OVERHEAD_BYTES_MAX
        )
        before = np.concatenate([[0], np.cumsum(entry_sizes)])
        sizes = sizes + before[headers.ends] - before[headers.starts]
    return sizes
