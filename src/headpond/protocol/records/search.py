"""Finds one record by time inside one batch: the last step of ListOffsets, after the time index and the headers.

Timestamps within a batch need not ascend: a producer sets them as it likes. Hence every record is looked at, up to the
one that is the answer; of each, no more than its size and its time: a tenth of what decoding it takes.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from headpond.ports import Buffer
from headpond.protocol.records.compression import DECOMPRESSED_BYTES_MAX
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import NO_TIMESTAMP, BatchHeader, read_header
from headpond.protocol.records.longs import LONG_MIN, wrapped
from headpond.protocol.records.reader import read_payload
from headpond.protocol.records.varint import decode_varint


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


def first_at_or_after(
    batch: Buffer, timestamp: int, *, from_offset: int = 0, size_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> TimestampOffset | None:
    """The first record at ``from_offset`` or later that is as late as ``timestamp``. Raises ``CorruptBatch``, or its
    ``DecompressedTooLarge``."""
    header = read_header(batch)
    if header.max_timestamp < timestamp and header.is_append_time:
        return None
    payload = read_payload(batch, header, size_bytes_max=size_bytes_max)
    for found in _at_or_after(payload, header, timestamp):
        if found.offset >= from_offset:
            return found
    return None


def latest(batch: Buffer, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> TimestampOffset | None:
    """The first of the records with the highest timestamp, by the header where that is right; None for a batch without
    records, or whose records are all before 1970. Raises as ``first_at_or_after`` does.

    Under append time all records have the same timestamp: the first one is the answer, as Kafka gives it.
    """
    header = read_header(batch)
    payload = read_payload(batch, header, size_bytes_max=size_bytes_max)
    best: TimestampOffset | None = None
    walk = _at_or_after(payload, header, NO_TIMESTAMP)
    try:
        best = next(walk)
        while best.timestamp != header.max_timestamp:
            best = walk.send(best.timestamp + 1)
    except StopIteration:
        pass
    return best


def _at_or_after(payload: bytes, header: BatchHeader, timestamp: int) -> Generator[TimestampOffset, int | None, None]:
    """The records that are as late as ``timestamp``, or as what is sent. Numbers of one and two bytes, which nearly all
    are, are read on the spot: a function call costs more than all the rest."""
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.is_append_time else None
    position = 0
    try:
        for _ in range(header.count):
            byte = payload[position]
            if byte & 1:  # an odd varint is negative
                raise CorruptBatch("a record's size is negative")
            if byte < 0x80:
                position += 1
                end = position + (byte >> 1)
            elif (second := payload[position + 1]) < 0x80:
                position += 2
                end = position + ((byte & 0x7F | second << 7) >> 1)
            else:
                size, position = decode_varint(payload, position)
                end = position + size
            position += 1  # behind the record's attributes: none exist
            byte = payload[position]
            if byte < 0x80:
                delta = (byte >> 1) ^ -(byte & 1)
            elif (second := payload[position + 1]) < 0x80:
                byte = byte & 0x7F | second << 7
                delta = (byte >> 1) ^ -(byte & 1)
            else:
                delta, _ = decode_varint(payload, position, bytes_max=10)
            found = base_timestamp + delta
            if found >= timestamp or found < LONG_MIN or append_time is not None:
                found = wrapped(found) if append_time is None else append_time
                if found >= timestamp:
                    _, position = decode_varint(payload, position, bytes_max=10)
                    delta, position = decode_varint(payload, position)
                    higher = yield TimestampOffset(found, header.base_offset + delta)
                    if higher is not None:
                        timestamp = higher
            if end < position:
                raise CorruptBatch("a record ends before its time does")
            position = end
    except IndexError:
        raise CorruptBatch("the records end before their last one does") from None
    if position != len(payload):
        raise CorruptBatch(f"the records end at byte {position} of {len(payload)}")
