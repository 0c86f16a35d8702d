"""RecordBatch v2, built and read by the tests' own few lines, with every field open to lies.

Independent of ``headpond.protocol.records`` on purpose: a mistake there must not be able to hide itself here.
"""

from __future__ import annotations

import gzip
import struct
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import cramjam
from crc32c import crc32c

_HEAD = struct.Struct(">qiibI")
_BODY = struct.Struct(">hiqqqhii")
HEADER_BYTES = _HEAD.size + _BODY.size

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


class Rec(NamedTuple):
    value: bytes | None = b"v"
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_delta_ms: int = 0


class Batch(NamedTuple):
    """The header of a stored batch, and its bytes."""

    base_offset: int
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
    count: int
    data: bytes

    @property
    def codec(self) -> int:
        return self.attributes & 7

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def crc_is_right(self) -> bool:
        return crc32c(self.data[21:]) == self.crc


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _record(record: Rec, delta: int) -> bytes:
    headers = b"".join(_sized(name.encode()) + _sized(value) for name, value in record.headers)
    body = b"\0" + _varint(record.timestamp_delta_ms) + _varint(delta) + _sized(record.key) + _sized(record.value)
    body += _varint(len(record.headers)) + headers
    return _varint(len(body)) + body


def compress(codec: str, data: bytes) -> bytes:
    if codec == "gzip":
        return gzip.compress(data, mtime=0)  # the same bytes every time
    if codec == "snappy":
        return bytes(cramjam.snappy.compress_raw(data))
    if codec == "lz4":
        # Kafka reads independent blocks only.
        compressor = cramjam.lz4.Compressor(block_linked=False)
        compressor.compress(data)
        return bytes(compressor.finish())
    if codec == "zstd":
        return bytes(cramjam.zstd.compress(data))
    return data


def build(
    records: Sequence[Rec | bytes],
    *,
    codec: str = "none",
    attributes: int = 0,
    base_offset: int = 0,
    timestamp_ms: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    count: int | None = None,
    last_offset_delta: int | None = None,
    magic: int = 2,
    crc: int | None = None,
    batch_length: int | None = None,
) -> bytes:
    """One batch; the keyword arguments that are None are told as they are, the others are believed."""
    rows = [record if isinstance(record, Rec) else Rec(record) for record in records]
    base_timestamp = now_ms() if timestamp_ms is None else timestamp_ms
    max_timestamp = base_timestamp + max((row.timestamp_delta_ms for row in rows), default=0)
    payload = compress(codec, b"".join(_record(row, delta) for delta, row in enumerate(rows)))
    body = (
        _BODY.pack(
            attributes | CODECS[codec],
            len(rows) - 1 if last_offset_delta is None else last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            len(rows) if count is None else count,
        )
        + payload
    )
    length = len(body) + 9 if batch_length is None else batch_length
    return _HEAD.pack(base_offset, length, -1, magic, crc32c(body) if crc is None else crc) + body


def split(data: bytes | memoryview | None) -> Iterator[Batch]:
    """The whole batches in a fetched record set; a batch cut short at the end is left out."""
    data = bytes(data or b"")
    position = 0
    while len(data) - position >= HEADER_BYTES:
        base_offset, length, leader_epoch, magic, crc = _HEAD.unpack_from(data, position)
        end = position + 12 + length
        if end > len(data):
            return
        rest = _BODY.unpack_from(data, position + _HEAD.size)
        yield Batch(base_offset, leader_epoch, magic, crc, *rest, data[position:end])
        position = end
