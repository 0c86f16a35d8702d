"""The two ways in which a leader changes what a batch's checksum covers: its timestamps' meaning, and its codec.

Offsets within the batch, keys, values, headers and the producer's fields never change.
"""

from __future__ import annotations

import struct

from headpond.ports import Buffer
from headpond.protocol.records.builder import assemble
from headpond.protocol.records.compression import compress
from headpond.protocol.records.header import (
    APPEND_TIME_BIT,
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CRC_POSITION,
    MAX_TIMESTAMP_POSITION,
    BatchHeader,
    crc_of,
    read_header,
)
from headpond.protocol.records.reader import read_payload

_attributes = struct.Struct(">h")
_timestamp = struct.Struct(">q")
_crc = struct.Struct(">I")


def set_append_time(batch: bytearray | memoryview, append_time_ms: int) -> BatchHeader:
    """Give all records of ``batch`` (one batch, writable) the broker's time, in place; the new header."""
    return set_timestamps(batch, append_time_ms, is_append_time=True)


def set_timestamps(batch: bytearray | memoryview, max_timestamp: int, *, is_append_time: bool) -> BatchHeader:
    """Write the timestamp type and the max timestamp in place, with the checksum that goes with them."""
    (attributes,) = _attributes.unpack_from(batch, ATTRIBUTES_POSITION)
    attributes = attributes | APPEND_TIME_BIT if is_append_time else attributes & ~APPEND_TIME_BIT
    _attributes.pack_into(batch, ATTRIBUTES_POSITION, attributes)
    _timestamp.pack_into(batch, MAX_TIMESTAMP_POSITION, max_timestamp)
    _crc.pack_into(batch, CRC_POSITION, crc_of(batch))
    return read_header(batch)


def recompress(batch: Buffer, codec: int, level: int | None = None, *, payload: bytes | None = None) -> bytearray:
    """A copy of ``batch`` in another codec. ``payload``: its records, if the caller has decompressed them already."""
    header = read_header(batch)
    if payload is None:
        payload = read_payload(batch, header)
    return assemble(
        compress(codec, payload, level),
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes & ~CODEC_MASK | codec,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=header.count,
    )
