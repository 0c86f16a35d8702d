"""The 61 bytes in front of every RecordBatch v2, which are all that the hot path looks at.

    base offset i64 · batch length i32 · leader epoch i32 · magic i8 · crc u32 |crc covers from here| attributes i16 ·
    last offset delta i32 · base timestamp i64 · max timestamp i64 · producer id i64 · producer epoch i16 ·
    base sequence i32 · record count i32

Base offset and leader epoch lie outside what the checksum covers: a leader patches them in place (``stamp``) and the
batch stays valid. Nothing here checks anything; admission and recovery do.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from headpond.ports import Buffer
from headpond.protocol.records.checksum import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = 61
LOG_OVERHEAD_BYTES = 12
"""Base offset and batch length: what ``batch_length`` does not count."""
LEADER_EPOCH_POSITION = 12
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
"""Where the part that the checksum covers begins."""
MAX_TIMESTAMP_POSITION = 35

CODEC_MASK = 0x07
APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

MAGIC = 2
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # the format's word; nobody calls tuple.count on a header

    @property
    def size_bytes(self) -> int:
        """The whole batch, from its base offset to its last record's end."""
        return LOG_OVERHEAD_BYTES + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 do not exist."""
        return self.attributes & CODEC_MASK

    @property
    def is_append_time(self) -> bool:
        return self.attributes & APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; they run from 2^31 - 1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


_unpack = HEADER.unpack_from
_new = tuple.__new__
# The two halves of ``stamp``, for the log, which stamps every batch that it appends.
stamp_offset = struct.Struct(">q").pack_into
stamp_epoch = struct.Struct(">i").pack_into


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header of the batch that starts at ``position``; ``struct.error`` when fewer than 61 bytes are left."""
    # tuple.__new__ skips the NamedTuple constructor's argument handling: half the cost of this call.
    return _new(BatchHeader, _unpack(buffer, position))


def crc_of(batch: Buffer) -> int:
    """The checksum that the header of ``batch`` (exactly one batch) ought to carry."""
    return crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
