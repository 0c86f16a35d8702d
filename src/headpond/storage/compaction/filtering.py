"""What becomes of one batch: it stays as it is, loses some records, keeps its header alone, or goes.

The range of its offsets, its producer's fields and its codec never change. A tombstone that stays gives its batch a
delete horizon (KIP-534): attribute bit 6 is set and the base timestamp is the time from which the tombstone may go; the
records' timestamps are written as distances from it.
"""

from __future__ import annotations

from collections.abc import Iterable

from headpond.protocol.records.builder import assemble, encode_record
from headpond.protocol.records.compression import NONE, compress
from headpond.protocol.records.header import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from headpond.protocol.records.reader import iter_payload, read_payload
from headpond.protocol.records.record import Record
from headpond.storage.compaction.key_map import DEAD, LIVE_TOMBSTONE, TOMBSTONE
from headpond.storage.compaction.keys import take_records

_NEVER_MS = 9_223_372_036_854_775_807
_KEPT_WHEN_EMPTY = APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT


def filter_batch(
    batch: bytes,
    header: BatchHeader,
    verdicts: bytes | bytearray,
    *,
    now_ms: int,
    delete_retention_ms: int,
    payload: bytes | None = None,
) -> bytes | bytearray | None:
    """``batch`` without the records that ``verdicts`` (one byte each) gives up, ``batch`` itself if that changes
    nothing, None if no record is left. ``payload``: its records, if they have been decompressed already."""
    tombstones_go = header.has_delete_horizon and header.base_timestamp <= now_ms
    dead = verdicts.count(DEAD) + verdicts.count(TOMBSTONE)
    live_tombstones = verdicts.count(LIVE_TOMBSTONE)
    if tombstones_go:
        dead += live_tombstones
        live_tombstones = 0
    if dead == len(verdicts):
        return None
    needs_horizon = live_tombstones > 0 and not header.has_delete_horizon
    if dead == 0 and not needs_horizon:
        return batch
    gives_up = (DEAD, TOMBSTONE, LIVE_TOMBSTONE) if tombstones_go else (DEAD, TOMBSTONE)
    kept = verdicts.translate(_keeps(gives_up))
    payload = read_payload(batch, header) if payload is None else payload
    if needs_horizon:
        return _with_horizon(header, payload, kept, min(now_ms + delete_retention_ms, _NEVER_MS))
    records, deltas = take_records(payload, kept)
    if header.is_append_time:
        max_timestamp = header.max_timestamp
    elif (span := deltas.span_from(header.base_timestamp)) is not None:
        max_timestamp = span[1]
    else:
        max_timestamp = max(record.timestamp for record in _kept_records(header, payload, kept))
    return _assemble(header, records, header.attributes, header.base_timestamp, max_timestamp)


def without_records(header: BatchHeader) -> bytearray:
    """The header alone: it still tells the offsets, and the producer's last sequence."""
    return assemble(
        b"",
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes & _KEPT_WHEN_EMPTY,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=0,
    )


def _with_horizon(header: BatchHeader, payload: bytes, kept: bytes | bytearray, horizon_ms: int) -> bytearray:
    records = _kept_records(header, payload, kept)
    return _assemble(
        header,
        [encode_record(record, header.base_offset, horizon_ms) for record in records],
        header.attributes | DELETE_HORIZON_BIT,
        horizon_ms,
        header.max_timestamp if header.is_append_time else max(record.timestamp for record in records),
    )


def _kept_records(header: BatchHeader, payload: bytes, kept: bytes | bytearray) -> list[Record]:
    return [record for record, stays in zip(iter_payload(payload, header), kept, strict=True) if stays]


def _assemble(
    header: BatchHeader, records: list[bytes], attributes: int, base_timestamp: int, max_timestamp: int
) -> bytearray:
    payload = b"".join(records)
    codec = attributes & CODEC_MASK
    return assemble(
        payload if codec == NONE else compress(codec, payload),
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=len(records),
    )


def _keeps(gives_up: Iterable[int]) -> bytes:
    table = bytearray(b"\1" * 256)
    for verdict in gives_up:
        table[verdict] = 0
    return bytes(table)
