"""Reads the records of one batch. Off the hot path: for searches by time, compacted topics, compaction, people.

Strict: lengths and counts have to add up to the last byte, else ``CorruptBatch``; no other exception leaves, and
memory stays within the limit that the caller gives for the decompressed payload.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeVar

from headpond.ports import Buffer
from headpond.protocol.records.compression import DECOMPRESSED_BYTES_MAX, decompress
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import HEADER_BYTES, BatchHeader, read_header
from headpond.protocol.records.longs import LONG_MAX, LONG_MIN, wrapped
from headpond.protocol.records.record import Header, Record
from headpond.protocol.records.varint import decode_varint

T = TypeVar("T")


def read_records(batch: Buffer, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Iterator[Record]:
    """The records of ``batch`` (exactly one, header included), in order. Nothing is checked that a CRC checks."""
    if len(batch) < HEADER_BYTES:
        raise CorruptBatch(f"{len(batch)} bytes are too few for a batch")
    header = read_header(batch)
    if header.size_bytes != len(batch):
        raise CorruptBatch(f"the batch has {len(batch)} bytes, its header says {header.size_bytes}")
    return iter_payload(read_payload(batch, header, size_bytes_max=size_bytes_max), header)


def read_payload(batch: Buffer, header: BatchHeader, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """What stands behind the header, decompressed."""
    return decompress(header.codec, memoryview(batch)[HEADER_BYTES:], size_bytes_max)


def iter_payload(payload: bytes, header: BatchHeader) -> Iterator[Record]:
    """The records of a decompressed payload."""
    if header.count < 0:
        raise CorruptBatch(f"Found invalid record count {header.count} in magic v{header.magic} batch")
    return to_the_last_byte(payload, _iter_records(payload, header))


def to_the_last_byte(payload: bytes, items: Generator[T, None, int]) -> Iterator[T]:
    """What ``items`` yields; ``CorruptBatch`` unless it returns the payload's end, and not beyond it."""
    try:
        position = yield from items
    except IndexError:
        raise CorruptBatch("Incorrect declared batch size, premature EOF reached") from None
    if position != len(payload):
        raise CorruptBatch("Incorrect declared batch size, records still remaining in file")


def _iter_records(data: bytes, header: BatchHeader) -> Generator[Record, None, int]:
    """Yields the records and returns where they end; an ``IndexError`` when the bytes end before.

    One long loop on purpose: numbers of one byte, which nearly all are, are decoded on the spot (the even ones stand
    for 0, 1, 2, ...): a function call costs more than all the rest.
    """
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.is_append_time else None
    data_end = len(data)
    position = 0
    for _ in range(header.count):
        size, position = decode_varint(data, position)
        end = position + size
        if size < 0 or end > data_end:
            raise CorruptBatch(f"a record of {size} bytes does not fit into the {data_end - position} that are left")
        position += 1  # the record's attributes: none exist
        byte = data[position]
        if byte < 0x80:
            timestamp = base_timestamp + ((byte >> 1) ^ -(byte & 1))
            position += 1
        else:
            delta, position = decode_varint(data, position, bytes_max=10)
            timestamp = base_timestamp + delta
        if not LONG_MIN <= timestamp <= LONG_MAX:
            timestamp = wrapped(timestamp)
        byte = data[position]
        if byte < 0x80:
            offset = base_offset + ((byte >> 1) ^ -(byte & 1))
            position += 1
        else:
            delta, position = decode_varint(data, position)
            offset = base_offset + delta
        key: bytes | None
        byte = data[position]
        if byte & 0x81:
            key, position = _read_bytes(data, position)
        else:
            start = position + 1
            position = start + (byte >> 1)
            key = data[start:position]
        value: bytes | None
        byte = data[position]
        if byte & 0x81:
            value, position = _read_bytes(data, position)
        else:
            start = position + 1
            position = start + (byte >> 1)
            value = data[start:position]
        headers: tuple[Header, ...] = ()
        if data[position]:
            headers, position = _read_headers(data, position, end)
        else:
            position += 1
        if position != end:
            raise CorruptBatch(f"a record's parts end at byte {position}, the record at {end}")
        yield _new(Record, (offset, timestamp if append_time is None else append_time, key, value, headers))
    return position


def _read_headers(data: bytes, position: int, record_end: int) -> tuple[tuple[Header, ...], int]:
    count, position = decode_varint(data, position)
    if count < 0 or count > record_end - position:
        raise CorruptBatch(f"a record claims {count} headers")
    headers: list[Header] = []
    for _ in range(count):
        name, position = _read_bytes(data, position)
        if name is None:
            raise CorruptBatch("a header has no name")
        value, position = _read_bytes(data, position)
        headers.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = decode_varint(data, position)
    if size < 0:
        return None, position
    end = position + size
    if end > len(data):
        raise CorruptBatch(f"a field of {size} bytes is cut off")
    return data[position:end], end


_new = tuple.__new__
