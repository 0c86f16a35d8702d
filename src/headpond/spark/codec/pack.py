"""The compiled half of encoding: writes the payload of one batch, as many rows as fit, one after the other."""

from __future__ import annotations

import numpy as np

from headpond.spark.codec.jit import (
    BYTES,
    NUMBERS,
    OUT_BYTES,
    OUT_NUMBERS,
    Bytes,
    Numbers,
    compiled,
    inlined,
)

# Where packing stands (NEXT, an index into ``rows``), and what the batch amounts to.
NEXT, COUNT, SIZE, MAX_TIMESTAMP = range(4)
STATE_FIELDS = 4


@inlined
def varint_bytes(value: int) -> int:
    """How many bytes a number takes."""
    zigzag = np.uint64((value << 1) ^ (value >> 63))
    size = 1
    while zigzag >= np.uint64(0x80):
        zigzag >>= np.uint64(7)
        size += 1
    return size


@inlined
def write_varint(out: Bytes, position: int, value: int) -> int:
    """Writes a number of up to 64 bits and returns where it ends. The caller has made room."""
    zigzag = np.uint64((value << 1) ^ (value >> 63))
    while zigzag >= np.uint64(0x80):
        out[np.uint64(position)] = np.uint8(zigzag & np.uint64(0x7F)) | np.uint8(0x80)
        zigzag >>= np.uint64(7)
        position += 1
    out[np.uint64(position)] = np.uint8(zigzag)
    return position + 1


@inlined
def copy_bytes(out: Bytes, out_start: int, data: Bytes, start: int, size: int) -> None:
    """``out[out_start : out_start + size] = data[start : start + size]``, unchecked.

    Unsigned places, as everywhere in these loops: see ``unpack``.
    """
    to = np.uint64(out_start)
    at = np.uint64(start)
    for index in range(np.uint64(size)):
        out[to + index] = data[at + index]


@inlined
def _piece_bytes(size: int) -> int:
    """What a key, a value or a name takes with the length in front of it."""
    return varint_bytes(size) + max(size, 0)


@inlined
def _write_piece(out: Bytes, position: int, data: Bytes, start: int, size: int) -> int:
    position = write_varint(out, position, size)
    if size > 0:
        copy_bytes(out, position, data, start, size)
        position += size
    return position


@compiled(
    NUMBERS,
    *(BYTES, NUMBERS, NUMBERS),
    *(BYTES, NUMBERS, NUMBERS),
    *(NUMBERS, NUMBERS),
    *(BYTES, NUMBERS, NUMBERS),
    *(BYTES, NUMBERS, NUMBERS),
    NUMBERS,
    OUT_BYTES,
    OUT_NUMBERS,
)
def pack(
    rows: Numbers,
    keys: Bytes,
    key_starts: Numbers,
    key_sizes: Numbers,
    values: Bytes,
    value_starts: Numbers,
    value_sizes: Numbers,
    header_starts: Numbers,
    header_ends: Numbers,
    names: Bytes,
    name_starts: Numbers,
    name_sizes: Numbers,
    header_values: Bytes,
    header_value_starts: Numbers,
    header_value_sizes: Numbers,
    timestamps: Numbers,
    out: Bytes,
    state: Numbers,
) -> None:
    """Fills ``out`` from the row at NEXT on, and moves NEXT behind the last one that had room.

    COUNT is 0 when not even the first has; SIZE is then what it would take. The caller vouches that rows, starts and
    sizes lie within their columns.
    """
    index = state[NEXT]
    position = 0
    count = 0
    base_timestamp = max_timestamp = timestamps[rows[index]]
    while index < rows.shape[0]:
        row = rows[index]
        timestamp_delta = timestamps[row] - base_timestamp
        body_bytes = 1 + varint_bytes(timestamp_delta) + varint_bytes(count)
        body_bytes += _piece_bytes(key_sizes[row]) + _piece_bytes(value_sizes[row])
        body_bytes += varint_bytes(header_ends[row] - header_starts[row])
        for entry in range(header_starts[row], header_ends[row]):
            body_bytes += _piece_bytes(name_sizes[entry]) + _piece_bytes(header_value_sizes[entry])
        record_bytes = varint_bytes(body_bytes) + body_bytes
        if record_bytes > out.shape[0] - position:
            if count == 0:
                position = record_bytes
            break
        position = write_varint(out, position, body_bytes)
        out[np.uint64(position)] = 0  # the record's attributes: none exist
        position = write_varint(out, position + 1, timestamp_delta)
        position = write_varint(out, position, count)
        position = _write_piece(out, position, keys, key_starts[row], key_sizes[row])
        position = _write_piece(out, position, values, value_starts[row], value_sizes[row])
        position = write_varint(out, position, header_ends[row] - header_starts[row])
        for entry in range(header_starts[row], header_ends[row]):
            position = _write_piece(out, position, names, name_starts[entry], name_sizes[entry])
            position = _write_piece(out, position, header_values, header_value_starts[entry], header_value_sizes[entry])
        max_timestamp = max(max_timestamp, timestamps[row])
        count += 1
        index += 1
    state[NEXT], state[COUNT], state[SIZE], state[MAX_TIMESTAMP] = index, count, position, max_timestamp
