"""Arrow columns of a chunk, brought to the one form that the compiled loops read: bytes, and where each row's lie.

Taken: binary, string, their large, view and fixed-size kinds, dictionaries of these, and columns of type null. All
others are refused, by the name of the column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headpond.spark.codec.errors import CannotEncode

NO_BYTES = np.empty(0, np.uint8)


class ByteColumn(NamedTuple):
    """A column of byte strings. A row's bytes are ``data[starts[row] : starts[row] + sizes[row]]``; size -1: null."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


class Headers(NamedTuple):
    """A row's headers are the entries ``starts[row]`` up to ``ends[row]`` of both columns."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    names: ByteColumn
    values: ByteColumn


class RecordColumns(NamedTuple):
    """What becomes of a chunk of rows, ready for ``encode`` and ``partition_of_keys``; made by ``of``."""

    count: int  # type: ignore[assignment]  # of rows; nobody calls tuple.count on columns
    key: ByteColumn
    value: ByteColumn
    headers: Headers
    timestamp_ms: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls,
        *,
        value: pa.Array,
        key: pa.Array | None = None,
        headers: pa.Array | None = None,
        timestamp: pa.Array | None = None,
        now_ms: int,
        keeps_early: bool = False,
    ) -> RecordColumns:
        """Columns of equal length. Rows without a timestamp get ``now_ms``; a finer one is rounded down to ms.

        ``headers``: list<struct<key, value>>, null for none. Raises ``CannotEncode`` for a type that can't be taken,
        a header without a name, or a timestamp below -1 unless ``keeps_early``: Kafka's producers write none, but a
        topic may hold some.
        """
        rows = len(value)
        for name, column in (("key", key), ("headers", headers), ("timestamp", timestamp)):
            if column is not None and len(column) != rows:
                raise CannotEncode(f"the column {name} has {len(column)} rows, value has {rows}")
        return cls(
            rows,
            bytes_of(key, rows, "key"),
            bytes_of(value, rows, "value"),
            _headers_of(headers, rows),
            _timestamps_of(timestamp, rows, now_ms, keeps_early=keeps_early),
        )


def bytes_of(column: pa.Array | None, rows: int, name: str) -> ByteColumn:
    """``name``: for the error. A column that is not there is null in all rows."""
    if column is None or pa.types.is_null(column.type):
        return ByteColumn(NO_BYTES, np.zeros(rows, np.int64), np.full(rows, -1, np.int64))
    if not isinstance(column, pa.Array):
        raise CannotEncode(f"the column {name} comes as {type(column).__name__}; it has to be one pyarrow.Array")
    kind = column.type
    if pa.types.is_dictionary(kind):
        return bytes_of(column.dictionary_decode(), rows, name)
    if _is_view(kind):
        column = column.cast(pa.large_binary())
        kind = column.type
    if pa.types.is_fixed_size_binary(kind):
        bounds = np.arange(column.offset, column.offset + rows + 1, dtype=np.int64) * kind.byte_width
        data_buffer = column.buffers()[1]
    elif pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        bounds = _numbers(column.buffers()[1], np.dtype(np.int64), column.offset, rows + 1)
        data_buffer = column.buffers()[2]
    elif pa.types.is_binary(kind) or pa.types.is_string(kind):
        bounds = _numbers(column.buffers()[1], np.dtype(np.int32), column.offset, rows + 1).astype(np.int64)
        data_buffer = column.buffers()[2]
    else:
        raise CannotEncode(f"the column {name} is of type {kind}; it has to be binary or string")
    data = NO_BYTES if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    sizes = np.diff(bounds)
    # The compiled loops check nothing: what they are given has to lie within the column.
    if rows and (bounds[0] < 0 or sizes.min() < 0 or bounds[-1] > len(data)):
        raise CannotEncode(f"the column {name} is damaged: its offsets point outside of its data")
    if column.null_count:
        sizes[_is_null(column)] = -1
    return ByteColumn(data, bounds[:-1], sizes)


def _headers_of(column: pa.Array | None, rows: int) -> Headers:
    if column is None or pa.types.is_null(column.type):
        none = bytes_of(None, 0, "headers")
        return Headers(np.zeros(rows, np.int64), np.zeros(rows, np.int64), none, none)
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        raise CannotEncode(f"the column headers is of type {kind}; it has to be list<struct<key, value>>")
    entry = kind.value_type
    if entry.get_field_index("key") < 0 or entry.get_field_index("value") < 0 or entry.num_fields != 2:
        raise CannotEncode(f"the entries of the column headers are {entry}; they have to be struct<key, value>")
    bounds = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    starts, ends = bounds[:-1].copy(), bounds[1:].copy()
    entries = column.values
    if rows and (bounds[0] < 0 or (ends < starts).any() or bounds[-1] > len(entries)):
        raise CannotEncode("the column headers is damaged: its offsets point outside of its entries")
    if column.null_count:
        absent = _is_null(column)
        ends[absent] = starts[absent]
    names = bytes_of(entries.field("key"), len(entries), "headers.key")
    values = bytes_of(entries.field("value"), len(entries), "headers.value")
    _refuse_nameless(entries, names, starts, ends)
    return Headers(starts, ends, names, values)


def _refuse_nameless(
    entries: pa.Array, names: ByteColumn, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> None:
    nameless = names.sizes < 0
    if entries.null_count:
        nameless = nameless | _is_null(entries)
    # Entries that no row points to (behind a null list) may be anything.
    for entry in np.flatnonzero(nameless):
        owners = np.flatnonzero((starts <= entry) & (entry < ends))
        if len(owners):
            raise CannotEncode(f"row {owners[0]} has a header without a name", row=int(owners[0]))


def _timestamps_of(column: pa.Array | None, rows: int, now_ms: int, *, keeps_early: bool) -> npt.NDArray[np.int64]:
    if column is None or pa.types.is_null(column.type):
        return np.full(rows, now_ms, np.int64)
    if not pa.types.is_timestamp(column.type):
        raise CannotEncode(f"the column timestamp is of type {column.type}; it has to be a timestamp")
    ticks = _numbers(column.buffers()[1], np.dtype(np.int64), column.offset, rows)
    if column.type.unit == "s":
        timestamps = np.clip(ticks, -(2**53), 2**53) * 1000
    else:
        timestamps = ticks // {"ms": 1, "us": 1_000, "ns": 1_000_000}[column.type.unit]
    if column.null_count:
        timestamps = np.where(_is_null(column), now_ms, timestamps)
    # -1 is Kafka's word for "no time".
    if rows and not keeps_early and timestamps.min() < -1:
        row = int(np.argmin(timestamps >= -1))
        raise CannotEncode(f"row {row} has a timestamp before 1970", row=row)
    return np.ascontiguousarray(timestamps, np.int64)


def _is_view(kind: pa.DataType) -> bool:
    return str(kind) in ("binary_view", "string_view")


def _is_null(column: pa.Array) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return flags


def _numbers(buffer: pa.Buffer | None, kind: np.dtype[Any], start: int, count: int) -> npt.NDArray[Any]:
    # An empty column may come without its buffer of offsets.
    if buffer is None or buffer.size < (start + count) * kind.itemsize:
        return np.zeros(count, np.int64)
    return np.frombuffer(buffer, kind, count, start * kind.itemsize)
