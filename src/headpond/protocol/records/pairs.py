"""Keys and values of a batch's records and nothing else: what coordinators read a million of when they start.

Half of what a whole record costs. As strict about sizes as ``reader`` is, except inside timestamps, offsets and
headers, which are stepped over.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.reader import to_the_last_byte
from headpond.protocol.records.varint import decode_varint

Pair = tuple[bytes | None, bytes | None]


def iter_pairs(payload: bytes, count: int) -> Iterator[Pair]:
    """Of a decompressed payload that holds ``count`` records. Raises ``CorruptBatch``."""
    return to_the_last_byte(payload, _iter_pairs(payload, count))


def _iter_pairs(data: bytes, count: int) -> Generator[Pair, None, int]:
    position, data_end = 0, len(data)
    for _ in range(count):
        byte = data[position]
        if byte < 0x80:
            size = (byte >> 1) ^ -(byte & 1)
            position += 1
        elif (second := data[position + 1]) < 0x80 and not byte & 1:
            size = (byte & 0x7F | second << 7) >> 1
            position += 2
        else:
            size, position = decode_varint(data, position)
        end = position + size
        if size < 0 or end > data_end:
            raise CorruptBatch(f"a record of {size} bytes does not fit into the {data_end - position} that are left")
        position += 1  # attributes
        while data[position] >= 0x80:  # timestamp
            position += 1
        position += 1
        while data[position] >= 0x80:  # offset
            position += 1
        position += 1
        key: bytes | None
        byte = data[position]
        if byte & 0x81:
            key, position = _read_bytes(data, position, end)
        else:
            start = position + 1
            position = start + (byte >> 1)
            key = data[start:position]
        value: bytes | None
        byte = data[position]
        if byte & 0x81:
            value, position = _read_bytes(data, position, end)
        else:
            start = position + 1
            position = start + (byte >> 1)
            value = data[start:position]
        if position >= end:
            raise CorruptBatch(f"a record's parts go beyond its end at byte {end}")
        position = end  # headers
        yield key, value
    return position


def _read_bytes(data: bytes, position: int, record_end: int) -> tuple[bytes | None, int]:
    size, position = decode_varint(data, position)
    if size < 0:
        return None, position
    end = position + size
    if end > record_end:
        raise CorruptBatch(f"a field of {size} bytes is cut off")
    return data[position:end], end
