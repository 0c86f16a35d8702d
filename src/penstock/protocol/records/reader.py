"""Reads the records of one batch. Off the hot path: for searches by time, compacted topics, compaction, people.

Strict: lengths and counts have to add up to the last byte, else ``CorruptBatch``; no other exception leaves, and
memory stays within the limit that the caller gives for the decompressed payload.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.ports import Buffer
from penstock.protocol.records.compression import DECOMPRESSED_BYTES_MAX, decompress
from penstock.protocol.records.errors import CorruptBatch
from penstock.protocol.records.header import HEADER_BYTES, BatchHeader, read_header
from penstock.protocol.records.record import Header, Record
from penstock.protocol.records.varint import decode_varint


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
    try:
        position = 0
        for _ in range(header.count):
            record, position = _read_record(payload, position, header)
            yield record
    except IndexError:
        raise CorruptBatch("Incorrect declared batch size, premature EOF reached") from None
    if position != len(payload):
        raise CorruptBatch("Incorrect declared batch size, records still remaining in file")


def _read_record(data: bytes, position: int, header: BatchHeader) -> tuple[Record, int]:
    size, position = decode_varint(data, position)
    end = position + size
    if size < 0 or end > len(data):
        raise CorruptBatch(f"a record of {size} bytes does not fit into the {len(data) - position} that are left")
    timestamp_delta, position = decode_varint(data, position + 1, bytes_max=10)  # 1: attributes, unused
    offset_delta, position = decode_varint(data, position)
    key, position = _read_bytes(data, position)
    value, position = _read_bytes(data, position)
    headers: tuple[Header, ...] = ()
    count, position = decode_varint(data, position)
    if count:
        if count < 0 or count > end - position:
            raise CorruptBatch(f"a record claims {count} headers")
        headers, position = _read_headers(data, position, count)
    if position != end:
        raise CorruptBatch(f"a record's parts end at byte {position}, the record at {end}")
    timestamp = header.max_timestamp if header.is_append_time else header.base_timestamp + timestamp_delta
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), position


def _read_headers(data: bytes, position: int, count: int) -> tuple[tuple[Header, ...], int]:
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
