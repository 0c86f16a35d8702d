"""Makes a RecordBatch v2 from records: for the command line, the internal client, coordinators and tests.

A batch carries a range of offsets and the first record's timestamp; each record carries its distance from those.
"""

from __future__ import annotations

from collections.abc import Sequence

from headpond.model import invariant
from headpond.ports import Buffer
from headpond.protocol.records.compression import NONE, compress
from headpond.protocol.records.header import (
    CODEC_MASK,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    crc_of,
)
from headpond.protocol.records.longs import wrapped
from headpond.protocol.records.record import Record
from headpond.protocol.records.varint import encode_varint

_NULL = encode_varint(-1)
_ZERO = encode_varint(0)


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    codec: int = NONE,
    level: int | None = None,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    last_offset_delta: int | None = None,
) -> bytearray:
    """One batch of at least one record, whose offsets ascend from ``base_offset`` or later.

    ``attributes``: the bits for append time, transactional and control (the codec's are set from ``codec``).
    ``last_offset_delta`` keeps a batch's range when records at its end were taken out (compaction).
    """
    invariant(len(records) > 0, "a batch needs a record")
    base_timestamp = records[0].timestamp
    max_timestamp = max(record.timestamp for record in records)
    payload = b"".join([encode_record(record, base_offset, base_timestamp) for record in records])
    if last_offset_delta is None:
        last_offset_delta = records[-1].offset - base_offset
    return assemble(
        compress(codec, payload, level),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes & ~CODEC_MASK | codec,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=len(records),
    )


def assemble(
    payload: Buffer,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    count: int,
) -> bytearray:
    """A header in front of a payload that is compressed already, with its length and checksum."""
    batch = bytearray(HEADER_BYTES + len(payload))
    batch[HEADER_BYTES:] = payload
    length = len(batch) - LOG_OVERHEAD_BYTES
    fields = (attributes, last_offset_delta, base_timestamp, max_timestamp)
    producer = (producer_id, producer_epoch, base_sequence, count)
    HEADER.pack_into(batch, 0, base_offset, length, leader_epoch, MAGIC, 0, *fields, *producer)
    HEADER.pack_into(batch, 0, base_offset, length, leader_epoch, MAGIC, crc_of(batch), *fields, *producer)
    return batch


def encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    parts = [
        b"\x00",  # the record's attributes: none exist
        encode_varint(wrapped(record.timestamp - base_timestamp)),
        encode_varint(record.offset - base_offset),
    ]
    for part in (record.key, record.value):
        if part is None:
            parts.append(_NULL)
        else:
            parts += (encode_varint(len(part)), part)
    if not record.headers:
        parts.append(_ZERO)
    else:
        parts.append(encode_varint(len(record.headers)))
        for name, value in record.headers:
            encoded = name.encode("utf-8", "surrogateescape")
            parts += (encode_varint(len(encoded)), encoded)
            if value is None:
                parts.append(_NULL)
            else:
                parts += (encode_varint(len(value)), value)
    body = b"".join(parts)
    return encode_varint(len(body)) + body
