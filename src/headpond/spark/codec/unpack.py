"""The compiled half of decoding, two passes over batches of records.

``scan`` checks every byte's place and notes where the records' parts lie; ``gather`` and ``find_headers`` then copy
what was found into Arrow's buffers. The second pass checks nothing: nothing may be read that the first did not find.

The rules are those of ``protocol.records.reader``, and three that columns need: a record's offset lies within its
batch's range, and one that is not above the record before it in the batch is passed over, as Kafka's consumer does; a
timestamp that microseconds can't count becomes the nearest that they can.
"""

from __future__ import annotations

import numpy as np

from headpond.protocol.records.header import APPEND_TIME_BIT, HEADER_BYTES
from headpond.spark.codec.jit import (
    BOUNDS,
    BYTES,
    FLAG,
    NUMBER,
    NUMBERS,
    OUT_BYTES,
    OUT_NUMBERS,
    TABLE,
    Bounds,
    Bytes,
    Number,
    Numbers,
    compiled,
    inlined,
)

# Where the scan stands; it goes on from there in the next chunk.
BATCH, RECORDS_DONE, POSITION, NEXT_OFFSET = range(4)
CURSOR_FIELDS = 4

# What a chunk amounts to.
ROWS, KEY_BYTES, VALUE_BYTES, HEADER_COUNT, NAME_BYTES, HEADER_VALUE_BYTES, FAULT = range(7)
TOTAL_FIELDS = 7

# What is noted of each row, one line of ``found`` each.
KEY_START, KEY_SIZE, VALUE_START, VALUE_SIZE, HEADERS_START, ROW_HEADERS = range(6)
OFFSET, TIMESTAMP_US, TIMESTAMP_TYPE = range(6, 9)
FOUND_LINES = 9

SOUND, TOO_SHORT, TOO_LONG, RECORD_CUT_OFF, WRONG_END, WRONG_HEADER_COUNT, NAMELESS_HEADER = range(7)
NEGATIVE_COUNT, RECORDS_REMAIN, FOREIGN_OFFSET = range(7, 10)
FAULTS = {
    TOO_SHORT: "Incorrect declared batch size, premature EOF reached",
    TOO_LONG: "a varint is longer than it may be",
    RECORD_CUT_OFF: "a record does not fit into the bytes that are left",
    WRONG_END: "a record's parts do not end where the record does",
    WRONG_HEADER_COUNT: "a record claims more headers than it has room for",
    NAMELESS_HEADER: "a header has no name",
    NEGATIVE_COUNT: "its count of records is negative",
    RECORDS_REMAIN: "Incorrect declared batch size, records still remaining in file",
    FOREIGN_OFFSET: "a record's offset is not one of the batch's",
}
"""What can be wrong. Helpers return it negated in place of a position."""

# Sums are compared before they are made, or unsigned: the compiler takes it that no signed one goes beyond 64 bits.
OFFSET_MAX = 2**63 - 1
MS_MAX = OFFSET_MAX // 1000
"""The last millisecond that microseconds can count. A producer may write any number: one beyond stands for the last, or
for the first, -MS_MAX."""
HEADER_OVERHEAD_BYTES = 8
"""What a header counts in a chunk's size besides its bytes: many empty ones take room too."""

# --- varints ----------------------------------------------------------------------------------------------------------


@inlined
def _read(data: Bytes, position: int, end: int, bytes_max: int) -> tuple[Number, int]:
    """The bits as they stand. One and two bytes, which nearly all numbers have, go without a loop."""
    if position >= end:
        return 0, -TOO_SHORT
    # Unsigned, since numba counts negative places from the end, which costs more than the reading.
    byte = np.int64(data[np.uint64(position)])
    if byte < 0x80:
        return byte, position + 1
    position += 1
    if position >= end:
        return 0, -TOO_SHORT
    zigzag = byte & 0x7F
    byte = np.int64(data[np.uint64(position)])
    zigzag |= (byte & 0x7F) << 7
    if byte < 0x80:
        return zigzag, position + 1
    for shift in range(14, 7 * bytes_max, 7):
        position += 1
        if position >= end:
            return 0, -TOO_SHORT
        byte = np.int64(data[np.uint64(position)])
        zigzag |= (byte & 0x7F) << shift
        if byte < 0x80:
            return zigzag, position + 1
    return 0, -TOO_LONG


@inlined
def read_varint(data: Bytes, position: int, end: int) -> tuple[Number, int]:
    """A number of up to 32 bits and where it ends; in place of the end -TOO_SHORT or -TOO_LONG.

    Higher bits are dropped, as ``protocol.records.varint`` does it.
    """
    zigzag, position = _read(data, position, end, 5)
    zigzag &= 0xFFFFFFFF
    return (zigzag >> 1) ^ -(zigzag & 1), position


@inlined
def read_varlong(data: Bytes, position: int, end: int) -> tuple[Number, int]:
    """The same with up to 64 bits."""
    zigzag, position = _read(data, position, end, 10)
    return ((zigzag >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(zigzag & 1), position


# --- one record -------------------------------------------------------------------------------------------------------


@inlined
def read_parts(data: Bytes, position: int, batch_end: int) -> tuple[int, int, int, int, int, int, int, int]:
    """(record end, timestamp delta, offset delta, key start, key size, value start, value size, headers start).

    A negative size is a null. The headers are not looked at: ``read_headers`` does that, and says where they end.
    """
    size, position = read_varint(data, position, batch_end)
    if position < 0:
        return position, 0, 0, 0, 0, 0, 0, 0
    if size < 0 or size > batch_end - position:
        return -RECORD_CUT_OFF, 0, 0, 0, 0, 0, 0, 0
    end = position + size
    position += 1  # the record's attributes: none exist
    timestamp_delta, position = read_varlong(data, position, end)
    if position < 0:
        return position, 0, 0, 0, 0, 0, 0, 0
    offset_delta, position = read_varint(data, position, end)
    if position < 0:
        return position, 0, 0, 0, 0, 0, 0, 0
    key_size, key_start = read_varint(data, position, end)
    if key_start < 0:
        return key_start, 0, 0, 0, 0, 0, 0, 0
    if key_size > end - key_start:
        return -TOO_SHORT, 0, 0, 0, 0, 0, 0, 0
    value_size, value_start = read_varint(data, key_start + max(key_size, 0), end)
    if value_start < 0:
        return value_start, 0, 0, 0, 0, 0, 0, 0
    if value_size > end - value_start:
        return -TOO_SHORT, 0, 0, 0, 0, 0, 0, 0
    headers_start = value_start + max(value_size, 0)
    return end, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size, headers_start


@inlined
def read_headers(data: Bytes, position: int, end: int) -> tuple[int, int, int, int]:
    """(where they end, how many, bytes of their names, bytes of their values) of the headers at ``position``."""
    count, position = read_varint(data, position, end)
    if position < 0:
        return position, 0, 0, 0
    if count < 0 or count > end - position:
        return -WRONG_HEADER_COUNT, 0, 0, 0
    name_bytes = 0
    value_bytes = 0
    for _ in range(count):
        name_size, position = read_varint(data, position, end)
        if position < 0:
            return position, 0, 0, 0
        if name_size < 0:
            return -NAMELESS_HEADER, 0, 0, 0
        if name_size > end - position:
            return -TOO_SHORT, 0, 0, 0
        value_size, position = read_varint(data, position + name_size, end)
        if position < 0:
            return position, 0, 0, 0
        if value_size > end - position:
            return -TOO_SHORT, 0, 0, 0
        position += max(value_size, 0)
        name_bytes += name_size
        value_bytes += max(value_size, 0)
    if position != end:
        return -WRONG_END, 0, 0, 0
    return position, count, name_bytes, value_bytes


# --- the first pass ---------------------------------------------------------------------------------------------------


@inlined
def _big_endian(data: Bytes, position: int, size: int) -> Number:
    """A signed number of ``size`` bytes."""
    value = np.int64(np.int8(data[position]))
    for index in range(position + 1, position + size):
        value = (value << 8) | np.int64(data[index])
    return value


@inlined
def _wrapped_sum(one: Number, other: Number) -> Number:
    """Modulo 2**64, as Java adds: so a batch's timestamps are for every consumer."""
    return np.int64(np.uint64(one) + np.uint64(other))


@compiled(BYTES, TABLE, NUMBER, NUMBER, OUT_NUMBERS, NUMBER, FLAG, FLAG, FLAG, FLAG, TABLE, OUT_NUMBERS)
def scan(
    data: Bytes,
    table: Numbers,
    from_offset: int,
    end_offset: int,
    cursor: Numbers,
    chunk_bytes: int,
    is_key_wanted: bool,
    is_value_wanted: bool,
    is_timestamp_wanted: bool,
    are_headers_wanted: bool,
    found: Numbers,
    totals: Numbers,
) -> None:
    """Goes on at the cursor until a chunk is full (by bytes, or by the rows of ``found``) or the last batch is done.

    ``table``: start and end of each batch in ``data``, its 61 bytes of header included; the caller vouches that they
    lie within. On a fault ``totals`` says which one, the cursor in which batch, and nothing else there means anything.
    """
    rows_max = found.shape[1]
    rows = key_bytes = value_bytes = header_count = name_bytes = header_value_bytes = 0
    chunk_left_bytes = chunk_bytes
    batch, records_done, position = cursor[BATCH], cursor[RECORDS_DONE], cursor[POSITION]
    next_offset = cursor[NEXT_OFFSET]
    fault = SOUND
    is_full = False
    while batch < table.shape[0]:
        batch_start, batch_end = table[batch, 0], table[batch, 1]
        base_offset = _big_endian(data, batch_start, 8)
        last_offset_delta = _big_endian(data, batch_start + 23, 4)
        base_timestamp = _big_endian(data, batch_start + 27, 8)
        max_timestamp = _big_endian(data, batch_start + 35, 8)
        is_append_time = (_big_endian(data, batch_start + 21, 2) & APPEND_TIME_BIT) != 0
        record_count = _big_endian(data, batch_start + 57, 4)
        if record_count < 0:
            fault = NEGATIVE_COUNT
            break
        if records_done == 0:
            position = batch_start + HEADER_BYTES
            next_offset = from_offset
        while records_done < record_count:
            end, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size, headers_start = (
                read_parts(data, position, batch_end)
            )
            if end < 0:
                fault = -end
                break
            row_headers = row_name_bytes = row_header_value_bytes = 0
            if headers_start == end - 1 and data[np.uint64(headers_start)] == 0:
                pass  # none, as nearly always
            else:
                headers_end, row_headers, row_name_bytes, row_header_value_bytes = read_headers(
                    data, headers_start, end
                )
                if headers_end < 0:
                    fault = -headers_end
                    break
            if offset_delta < 0 or offset_delta > last_offset_delta or base_offset > OFFSET_MAX - offset_delta:
                fault = FOREIGN_OFFSET
                break
            offset = base_offset + offset_delta
            if offset < next_offset or offset >= end_offset:
                records_done += 1
                position = end
                continue
            row_bytes = 0
            if is_key_wanted:
                row_bytes += max(key_size, 0)
            if is_value_wanted:
                row_bytes += max(value_size, 0)
            if are_headers_wanted:
                row_bytes += row_headers * HEADER_OVERHEAD_BYTES + row_name_bytes + row_header_value_bytes
            if rows > 0 and (rows == rows_max or row_bytes > chunk_left_bytes):
                is_full = True
                break
            chunk_left_bytes -= row_bytes
            if is_timestamp_wanted:
                timestamp = max_timestamp
                if not is_append_time:
                    timestamp = _wrapped_sum(base_timestamp, timestamp_delta)
                timestamp = min(max(timestamp, -MS_MAX), MS_MAX)
                found[TIMESTAMP_US, rows] = timestamp * 1000
            if is_key_wanted:
                found[KEY_START, rows] = key_start
                found[KEY_SIZE, rows] = key_size
                key_bytes += max(key_size, 0)
            if is_value_wanted:
                found[VALUE_START, rows] = value_start
                found[VALUE_SIZE, rows] = value_size
                value_bytes += max(value_size, 0)
            if are_headers_wanted:
                found[HEADERS_START, rows] = headers_start
                found[ROW_HEADERS, rows] = row_headers
                header_count += row_headers
                name_bytes += row_name_bytes
                header_value_bytes += row_header_value_bytes
            found[OFFSET, rows] = offset
            found[TIMESTAMP_TYPE, rows] = is_append_time
            rows += 1
            next_offset = offset + 1
            records_done += 1
            position = end
        if fault != SOUND or is_full:
            break
        if position != batch_end:
            fault = RECORDS_REMAIN
            break
        batch += 1
        records_done = 0
    cursor[BATCH], cursor[RECORDS_DONE] = batch, records_done
    cursor[POSITION], cursor[NEXT_OFFSET] = position, next_offset
    totals[ROWS], totals[FAULT] = rows, fault
    totals[KEY_BYTES], totals[VALUE_BYTES] = key_bytes, value_bytes
    totals[HEADER_COUNT], totals[NAME_BYTES], totals[HEADER_VALUE_BYTES] = header_count, name_bytes, header_value_bytes


# --- the second pass --------------------------------------------------------------------------------------------------


@inlined
def copy_bytes(out: Bytes, out_start: int, data: Bytes, start: int, size: int) -> None:
    """``out[out_start : out_start + size] = data[start : start + size]``, unchecked.

    Places are unsigned: numba counts negative ones from the end, and loops that might see one are ten times slower.
    """
    to = np.uint64(out_start)
    at = np.uint64(start)
    for index in range(np.uint64(size)):
        out[to + index] = data[at + index]


@compiled(BYTES, NUMBERS, NUMBERS, BOUNDS, OUT_BYTES)
def gather(data: Bytes, starts: Numbers, sizes: Numbers, bounds: Bounds, out: Bytes) -> int:
    """Puts pieces of ``data`` one behind the other; ``bounds`` are Arrow's offsets, one more than pieces.

    Returns how many are null (a negative size): these take no bytes.
    """
    nulls = 0
    end = 0
    bounds[0] = 0
    for row in range(starts.shape[0]):
        size = sizes[row]
        if size > 0:
            copy_bytes(out, end, data, starts[row], size)
            end += size
        elif size < 0:
            nulls += 1
        bounds[row + 1] = end
    return nulls


@compiled(NUMBERS, OUT_BYTES)
def mark_present(sizes: Numbers, bitmap: Bytes) -> None:
    """Arrow's validity bitmap: a bit for each size that is not negative, the lowest bit first."""
    for index in range(bitmap.shape[0]):
        bitmap[index] = 0
    for row in range(sizes.shape[0]):
        if sizes[row] >= 0:
            bitmap[row >> 3] |= np.uint8(1 << (row & 7))


@compiled(BYTES, NUMBERS, NUMBERS, BOUNDS, TABLE)
def find_headers(data: Bytes, starts: Numbers, counts: Numbers, bounds: Bounds, found: Numbers) -> None:
    """Where the headers of rows lie: name start, name size, value start, value size, one line of ``found`` each.

    ``starts``: of a row's headers, at their count. ``bounds``: the offsets of the list column.
    """
    end = data.shape[0]
    header = 0
    bounds[0] = 0
    for row in range(starts.shape[0]):
        _, position = read_varint(data, starts[row], end)
        for _ in range(counts[row]):
            size, position = read_varint(data, position, end)
            found[0, header] = position
            found[1, header] = size
            size, position = read_varint(data, position + size, end)
            found[2, header] = position
            found[3, header] = size
            position += max(size, 0)
            header += 1
        bounds[row + 1] = header
