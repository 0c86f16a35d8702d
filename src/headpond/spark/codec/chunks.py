"""Sections of batches to Arrow batches: scan a chunk, then fill exactly as much memory as it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from headpond.client.fetched import FetchedBatch, corrupt
from headpond.spark.codec import columns, unpack
from headpond.spark.codec.jit import Bounds, Bytes, Numbers
from headpond.spark.codec.sections import Section, sections_of

CHUNK_ROWS_MAX = 64 * 1024
"""For small records, and for columns that take no bytes of a payload."""


def chunks_of(batches: Iterable[FetchedBatch], schema: pa.Schema, chunk_bytes: int) -> Iterator[pa.RecordBatch]:
    found = np.empty((unpack.FOUND_LINES, CHUNK_ROWS_MAX), np.int64)
    for section in sections_of(batches, chunk_bytes):
        yield from _chunks_of_section(section, schema, chunk_bytes, found)


def _chunks_of_section(
    section: Section, schema: pa.Schema, chunk_bytes: int, found: Numbers
) -> Iterator[pa.RecordBatch]:
    is_key_wanted, is_value_wanted = columns.KEY in schema.names, columns.VALUE in schema.names
    is_timestamp_wanted, are_headers_wanted = columns.TIMESTAMP in schema.names, columns.HEADERS in schema.names
    data = section.data
    cursor = np.zeros(unpack.CURSOR_FIELDS, np.int64)
    totals = np.zeros(unpack.TOTAL_FIELDS, np.int64)
    while cursor[unpack.BATCH] < len(section.table):
        unpack.scan(
            data,
            section.table,
            section.from_offset,
            section.end_offset,
            cursor,
            chunk_bytes,
            is_key_wanted,
            is_value_wanted,
            is_timestamp_wanted,
            are_headers_wanted,
            found,
            totals,
        )
        if totals[unpack.FAULT] != unpack.SOUND:
            batch_start = section.table[cursor[unpack.BATCH], 0]
            base_offset = int.from_bytes(data[batch_start : batch_start + 8].tobytes(), "big", signed=True)
            raise corrupt(section.tp, base_offset, unpack.FAULTS[int(totals[unpack.FAULT])])
        if totals[unpack.ROWS] > 0:
            chunk = _Chunk(section, found[:, : totals[unpack.ROWS]], totals)
            arrays = [_MAKERS[name](chunk) for name in schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Chunk:
    """What the scan found of some rows, and how each column is made of it."""

    def __init__(self, section: Section, found: Numbers, totals: Numbers) -> None:
        self._section = section
        self._found = found
        self._totals = totals
        self._rows = found.shape[1]

    def key(self) -> pa.Array:
        return self._pieces(unpack.KEY_START, unpack.KEY_SIZE, unpack.KEY_BYTES)

    def value(self) -> pa.Array:
        return self._pieces(unpack.VALUE_START, unpack.VALUE_SIZE, unpack.VALUE_BYTES)

    def topic(self) -> pa.Array:
        return pa.repeat(pa.scalar(self._section.tp.topic, pa.string()), self._rows)

    def partition(self) -> pa.Array:
        return pa.repeat(pa.scalar(self._section.tp.partition, pa.int32()), self._rows)

    def offset(self) -> pa.Array:
        return pa.array(self._found[unpack.OFFSET].copy())

    def timestamp(self) -> pa.Array:
        return pa.array(self._found[unpack.TIMESTAMP_US].copy()).view(columns.COLUMN_TYPES[columns.TIMESTAMP])

    def timestamp_type(self) -> pa.Array:
        return pa.array(self._found[unpack.TIMESTAMP_TYPE].astype(np.int32))

    def headers(self) -> pa.Array:
        """Null, as in Spark's own connector, for records that have none."""
        counts = self._found[unpack.ROW_HEADERS]
        bounds, bounds_buffer = _new_numbers(self._rows + 1)
        parts = np.empty((4, int(self._totals[unpack.HEADER_COUNT])), np.int64)
        unpack.find_headers(self._section.data, self._found[unpack.HEADERS_START], counts, bounds, parts)
        names = binary_array(self._section.data, parts[0], parts[1], int(self._totals[unpack.NAME_BYTES]))
        values = binary_array(self._section.data, parts[2], parts[3], int(self._totals[unpack.HEADER_VALUE_BYTES]))
        entries = pa.StructArray.from_arrays([as_text(names), values], fields=list(columns.HEADER_TYPE))
        present, nulls = _validity(counts - 1)
        list_type = columns.COLUMN_TYPES[columns.HEADERS]
        return pa.Array.from_buffers(list_type, self._rows, [present, bounds_buffer], nulls, children=[entries])

    def _pieces(self, starts: int, sizes: int, total: int) -> pa.Array:
        return binary_array(self._section.data, self._found[starts], self._found[sizes], int(self._totals[total]))


_MAKERS: dict[str, Callable[[_Chunk], pa.Array]] = {
    columns.KEY: _Chunk.key,
    columns.VALUE: _Chunk.value,
    columns.TOPIC: _Chunk.topic,
    columns.PARTITION: _Chunk.partition,
    columns.OFFSET: _Chunk.offset,
    columns.TIMESTAMP: _Chunk.timestamp,
    columns.TIMESTAMP_TYPE: _Chunk.timestamp_type,
    columns.HEADERS: _Chunk.headers,
}


def binary_array(data: Bytes, starts: Numbers, sizes: Numbers, total_bytes: int) -> pa.Array:
    """Pieces of ``data`` as a column of type binary. ``total_bytes``: what the sizes above 0 add up to."""
    bounds, bounds_buffer = _new_numbers(len(starts) + 1)
    out_buffer = pa.allocate_buffer(total_bytes)
    nulls = unpack.gather(data, starts, sizes, bounds, np.frombuffer(out_buffer, np.uint8))
    present = _validity(sizes)[0] if nulls else None
    return pa.Array.from_buffers(pa.binary(), len(starts), [present, bounds_buffer, out_buffer], nulls)


def as_text(names: pa.Array) -> pa.Array:
    """The same bytes as strings; what is not UTF-8 is replaced, as Java does it."""
    texts = pa.Array.from_buffers(pa.string(), len(names), names.buffers(), names.null_count)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], pa.string())
    return texts


def _validity(sizes: Numbers) -> tuple[pa.Buffer | None, int]:
    nulls = int((sizes < 0).sum())
    if nulls == 0:
        return None, 0
    buffer = pa.allocate_buffer((len(sizes) + 7) // 8)
    unpack.mark_present(sizes, np.frombuffer(buffer, np.uint8))
    return buffer, nulls


def _new_numbers(count: int) -> tuple[Bounds, pa.Buffer]:
    """Memory for Arrow's offsets, to be written and to be given to Arrow."""
    buffer = pa.allocate_buffer(count * 4)
    return np.frombuffer(buffer, np.int32), buffer
