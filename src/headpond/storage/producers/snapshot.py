"""The `<offset>.snapshot` file: what every producer of a partition had written before that offset. Kafka's format.

    version i16 = 1 · crc32c u32 over all that follows · entry count i32 · entries of 46 bytes

A snapshot is a short cut for recovery, never the truth: the truth is the log. One that is cut off or damaged raises
``CorruptSnapshot``; the reader then takes an older one, or none, and replays more of the log. Only the newest of a
producer's five batches is kept in it, so after a crash only that one (and those replayed) is known as a duplicate.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from headpond.ports import Buffer
from headpond.protocol.records.checksum import crc32c

VERSION = 1
_PREFIX = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


class CorruptSnapshot(Exception):
    """The file does not hold what was once written to it. Carry on with an older one."""


class SnapshotEntry(NamedTuple):
    """``last_offset`` -1: no batch of this epoch yet (a marker came last). ``txn_first_offset`` -1: no transaction."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int


def encode_entry(entry: SnapshotEntry) -> bytes:
    return _ENTRY.pack(*entry)


def join_snapshot(packed: list[bytes]) -> bytes:
    """A snapshot of entries that are encoded already."""
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _PREFIX.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: Buffer) -> list[SnapshotEntry]:
    """The entries of a snapshot file's bytes, or ``CorruptSnapshot``."""
    if len(data) < _PREFIX.size + _COUNT.size:
        raise CorruptSnapshot(f"{len(data)} bytes are too few for a producer snapshot")
    version, crc = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(f"producer snapshot has version {version}, only {VERSION} is known")
    body = memoryview(data)[_PREFIX.size :]
    if (computed := crc32c(body)) != crc:
        raise CorruptSnapshot(f"producer snapshot has CRC {crc:#010x}, its content {computed:#010x}")
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or _COUNT.size + count * _ENTRY.size != len(body):
        raise CorruptSnapshot(f"producer snapshot announces {count} entries in {len(body)} bytes")
    return [SnapshotEntry._make(fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]
