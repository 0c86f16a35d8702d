"""Decides whether a client's batch may enter the log, and in which form. Pure; nothing is written here.

The common case costs one header, one checksum and a dozen comparisons, however many records there are: what the
checksum covers is what the producer meant. Only where a topic's promise depends on it are the records looked at
(``deep.py``): compacted topics (no null keys), ``message.timestamp.before.max.ms``, a ``compression.type`` of
the topic's own, ``headpond.validate.records``, and headers whose timestamps look wrong.

Codes and texts are Kafka's, asked of a real one: most refusals carry no text there, so ``message`` is empty and the
reason for people is ``str(error)``. The few answers of -1 are Kafka's too: it meets an exception that has no code.
"""

from __future__ import annotations

import struct

from headpond.config.log import LogConfig
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.records.checksum import crc32c
from headpond.protocol.records.compression import CODEC_NAMES, NONE, ZSTD
from headpond.protocol.records.header import (
    APPEND_TIME_BIT,
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    read_header,
)
from headpond.protocol.records.rewrite import set_append_time
from headpond.storage.admission.deep import examine, needs_deep_look, writable
from headpond.storage.admission.refused import BatchRefused, LookNeeded

__all__ = ["BatchRefused", "LookNeeded", "admit", "needs_deep_look", "plain_header"]

RECORD_BYTES_MIN = 7
"""A record with neither key nor value nor headers."""
_MESSAGE_BYTES_MIN = 14  # of the oldest message format; Kafka cuts batches by it before it knows their version
_NOT_PLAIN_BITS = APPEND_TIME_BIT | CONTROL_BIT
_read_length = struct.Struct(">i").unpack_from
_read_magic = struct.Struct(">b").unpack_from


def plain_header(batch: memoryview, config: LogConfig, now_ms: int, zstd_allowed: bool) -> BatchHeader | None:
    """The header of a batch that a topic with create times takes as it is: the common case, in one go. None: something
    is wrong, or to be changed, or to be looked at; ``admit`` knows what. Not for topics that need a deep look."""
    if len(batch) < HEADER_BYTES:
        return None
    header = read_header(batch, 0)
    offset, length, _, magic, crc, attributes, last_delta, base_ms, max_ms, producer_id, _, sequence, count = header
    size = LOG_OVERHEAD_BYTES + length
    codec = attributes & CODEC_MASK
    if (
        size != len(batch)
        or magic != MAGIC
        or offset
        or size > config.max_message_bytes
        or size > config.segment_bytes
        or attributes & _NOT_PLAIN_BITS
        or codec > ZSTD
        or (codec == ZSTD and not zstd_allowed)
        or count <= 0
        or last_delta != count - 1
        or size - HEADER_BYTES < (count * RECORD_BYTES_MIN if codec == NONE else 1)
        or (sequence < 0 and producer_id >= 0)
        or max_ms < base_ms
        or max_ms > now_ms + config.timestamp_after_max_ms
        or crc32c(batch[ATTRIBUTES_POSITION:]) != crc
    ):
        return None
    return header


def admit(
    batch: memoryview,
    config: LogConfig,
    now_ms: int,
    tp: TopicPartition,
    *,
    zstd_allowed: bool = True,
    inside_bytes_max: int | None = None,
) -> tuple[memoryview, BatchHeader]:
    """The batch to append for one partition's records field, with its header; ``BatchRefused`` if there is none.

    ``batch`` is changed in place where it can be (append time); what is returned may be a part of it (Kafka ignores an
    incomplete batch at the end) or a new one (recompressed). ``zstd_allowed`` is false below Produce v7. Raises
    ``LookNeeded`` instead of looking at records that take more than ``inside_bytes_max``; 0: at any.
    """
    if len(batch) < HEADER_BYTES:
        raise _cut_off(batch)
    header = read_header(batch, 0)
    offset, length, _, magic, crc, attributes, last_delta, base_ms, max_ms, producer_id, _, sequence, count = header
    size = LOG_OVERHEAD_BYTES + length
    codec = attributes & CODEC_MASK
    if size != len(batch) or magic != MAGIC or (codec == ZSTD and not zstd_allowed):
        batch = _cut_one(batch, zstd_allowed=zstd_allowed)
    if offset != 0:
        raise BatchRefused(ErrorCode.INVALID_RECORD, reason=f"base offset {offset} instead of 0 in {tp}")
    if size > config.max_message_bytes:
        raise BatchRefused(
            ErrorCode.MESSAGE_TOO_LARGE, reason=f"{size} bytes, max.message.bytes of {tp} is {config.max_message_bytes}"
        )
    if crc32c(batch[ATTRIBUTES_POSITION:]) != crc:
        raise BatchRefused(ErrorCode.CORRUPT_MESSAGE, reason=f"wrong CRC in a batch for {tp}")
    if (
        codec > ZSTD
        or count <= 0
        or last_delta != count - 1
        or size - HEADER_BYTES < (count * RECORD_BYTES_MIN if codec == NONE else 1)
        or attributes & CONTROL_BIT
        or (sequence < 0 and producer_id >= 0)
    ):
        raise _inconsistent(header, tp)
    if size > config.segment_bytes:
        raise BatchRefused(ErrorCode.RECORD_LIST_TOO_LARGE, reason=f"{size} bytes do not fit into a segment of {tp}")
    looks_deep = needs_deep_look(config)
    if config.timestamp_is_append_time:
        if attributes & APPEND_TIME_BIT or looks_deep:
            return _examine(batch, header, config, now_ms, tp, inside_bytes_max=inside_bytes_max)
        batch = writable(batch)
        return batch, set_append_time(batch, now_ms)
    if (
        max_ms > now_ms + config.timestamp_after_max_ms
        or max_ms < base_ms
        or attributes & APPEND_TIME_BIT
        or looks_deep
    ):
        return _examine(batch, header, config, now_ms, tp, inside_bytes_max=inside_bytes_max)
    return batch, header


def _examine(
    batch: memoryview,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    tp: TopicPartition,
    *,
    inside_bytes_max: int | None,
) -> tuple[memoryview, BatchHeader]:
    if inside_bytes_max == 0:
        raise LookNeeded
    return examine(batch, header, config, now_ms, tp, inside_bytes_max)


def _inconsistent(header: BatchHeader, tp: TopicPartition) -> BatchRefused:
    """Why a header contradicts itself or asks for what clients may not do."""
    if header.codec >= len(CODEC_NAMES):
        return BatchRefused(ErrorCode.UNKNOWN_SERVER_ERROR, reason=f"Unknown compression type id: {header.codec}")
    if header.count <= 0 or header.last_offset_delta != header.count - 1:
        reason = f"{header.count} records with a last offset delta of {header.last_offset_delta}"
    elif header.is_control:
        reason = "clients may not write control records"
    elif header.base_sequence < 0 and header.has_producer_id:
        reason = f"producer {header.producer_id} sent sequence {header.base_sequence}"
    else:
        reason = f"{header.count} records in {header.size_bytes} bytes"
    return BatchRefused(ErrorCode.INVALID_RECORD, reason=f"{reason} in {tp}")


def _cut_one(data: memoryview, *, zstd_allowed: bool) -> memoryview:
    """The one batch in a records field, without an incomplete one behind it."""
    size = _batch_size(data, says_why=True)
    if size is None or size > len(data):
        raise _no_batch(data)
    (magic,) = _read_magic(data, MAGIC_POSITION)
    if magic != MAGIC:
        raise BatchRefused(ErrorCode.INVALID_RECORD, reason=f"a batch of message format {magic}, only 2 is accepted")
    if size >= HEADER_BYTES and read_header(data).codec == ZSTD and not zstd_allowed:
        raise BatchRefused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason="zstd needs Produce v7 or newer")
    rest = data[size:]
    next_size = _batch_size(rest, says_why=False)
    if next_size is not None and next_size <= len(rest):
        raise BatchRefused(ErrorCode.INVALID_RECORD, reason="more than one batch for a partition")
    if size < HEADER_BYTES:
        raise BatchRefused(ErrorCode.CORRUPT_MESSAGE, reason=f"a batch of {size} bytes is shorter than its header")
    return data[:size]


def _cut_off(data: memoryview) -> BatchRefused:
    """Fewer bytes than a header has: there is no good batch; which of the errors is it?"""
    size = _batch_size(data, says_why=True)
    if size is None or size > len(data):
        return _no_batch(data)
    (magic,) = _read_magic(data, MAGIC_POSITION)
    if magic != MAGIC:
        return BatchRefused(ErrorCode.INVALID_RECORD, reason=f"a batch of message format {magic}, only 2 is accepted")
    return BatchRefused(ErrorCode.CORRUPT_MESSAGE, reason=f"a batch of {size} bytes is shorter than its header")


def _no_batch(data: memoryview) -> BatchRefused:
    return BatchRefused(ErrorCode.INVALID_RECORD, reason=f"no whole batch in the {len(data)} bytes for a partition")


def _batch_size(data: memoryview, *, says_why: bool) -> int | None:
    """What the batch at the start of ``data`` claims to take; None when too little is there to tell.

    Raises CORRUPT_MESSAGE for an impossible length or format; Kafka tells why for the first batch only.
    """
    if len(data) < LOG_OVERHEAD_BYTES:
        return None
    (length,) = _read_length(data, 8)
    why = ""
    if length < _MESSAGE_BYTES_MIN:
        why = f"Record size {length} is less than the minimum record overhead ({_MESSAGE_BYTES_MIN})"
    elif len(data) <= MAGIC_POSITION:
        return None
    elif not 0 <= (magic := _read_magic(data, MAGIC_POSITION)[0]) <= MAGIC:
        why = f"Invalid magic found in record: {magic}"
    if why:
        raise BatchRefused(ErrorCode.CORRUPT_MESSAGE, why if says_why else "", reason=why)
    return LOG_OVERHEAD_BYTES + int(length)
