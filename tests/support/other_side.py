"""What only the other side of a codec needs: headers of answers, batches with the
offsets that a log gave them, and whole snapshots of producers. The broker and its client do each in their own way."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from headpond.protocol.header import has_tagged_response_header
from headpond.protocol.records.header import LEADER_EPOCH_POSITION, stamp_epoch, stamp_offset
from headpond.storage.producers.snapshot import SnapshotEntry, encode_entry, join_snapshot


def encode_response_header(key: int, version: int, correlation_id: int) -> bytes:
    header = struct.pack(">i", correlation_id)
    return header + b"\0" if has_tagged_response_header(key, version) else header


def stamp(batch: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write the offset and the leader epoch that a log gives to the batch at ``position``; its CRC stays right."""
    stamp_offset(batch, position, base_offset)
    stamp_epoch(batch, position + LEADER_EPOCH_POSITION, leader_epoch)


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    return join_snapshot([encode_entry(entry) for entry in entries])
