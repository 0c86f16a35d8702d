"""The look inside a batch on produce, for topics whose promises need it. Slow: a Python loop over the records, a quick
one first, which nearly all batches pass.

What is checked is Kafka's LogValidator: that the records are what the header counts, keys of compacted topics, and
timestamps; offsets within the batch have to be 0, 1, 2, ... (Kafka lets an uncompressed batch lie about those). A
header whose max timestamp or timestamp type disagrees with the records is put right; the batch is recompressed when
the topic has a ``compression.type`` of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from headpond.config.log import LogConfig
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.records.compression import CODEC_NAMES, GZIP, LZ4, NONE, ZSTD
from headpond.protocol.records.errors import CorruptBatch, DecompressedTooLarge
from headpond.protocol.records.header import NO_TIMESTAMP, BatchHeader, read_header
from headpond.protocol.records.longs import wrapped
from headpond.protocol.records.reader import iter_payload, read_payload
from headpond.protocol.records.record import Record
from headpond.protocol.records.rewrite import recompress, set_timestamps
from headpond.protocol.records.skim import skim
from headpond.storage.admission.refused import BatchRefused, LookNeeded

TIMESTAMP_BEFORE_UNLIMITED_MS = 9_223_372_036_854_775_807
DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024
"""A batch that is larger inside is refused with MESSAGE_TOO_LARGE: Java producers split it and try again."""
RECORD_ERRORS_MAX = 1_000
"""More refused records than these are counted, not listed: the answer must not outgrow the request."""


def needs_deep_look(config: LogConfig) -> bool:
    """Whether every batch of such a topic is examined. Worth a worker: it takes milliseconds for a large batch."""
    return (
        config.compacts
        or config.validates_records
        or config.compression_type != "producer"
        or (config.timestamp_before_max_ms < TIMESTAMP_BEFORE_UNLIMITED_MS and not config.timestamp_is_append_time)
    )


def examine(
    batch: memoryview,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    tp: TopicPartition,
    inside_bytes_max: int | None = None,
) -> tuple[memoryview, BatchHeader]:
    """The batch as it is to be appended, and its header; its header and checksum were found good already. Raises
    ``LookNeeded`` when its records take more than ``inside_bytes_max``."""
    codec = _target_codec(config, header)
    payload = _payload(batch, header, inside_bytes_max)
    max_timestamp = _check_records(payload, header, config, now_ms, tp, rebuilds=codec != header.codec)
    if codec != header.codec:
        batch = memoryview(recompress(batch, codec, _level(config, codec), payload=payload))
        if len(batch) > config.max_message_bytes:
            raise BatchRefused(ErrorCode.MESSAGE_TOO_LARGE, reason=f"{len(batch)} bytes after recompression for {tp}")
        if len(batch) > config.segment_bytes:
            raise BatchRefused(ErrorCode.RECORD_LIST_TOO_LARGE, reason=f"{len(batch)} bytes do not fit into a segment")
        header = read_header(batch)
    if config.timestamp_is_append_time:
        max_timestamp = now_ms
    if header.is_append_time != config.timestamp_is_append_time or header.max_timestamp != max_timestamp:
        batch = writable(batch)
        header = set_timestamps(batch, max_timestamp, is_append_time=config.timestamp_is_append_time)
    return batch, header


def writable(batch: memoryview) -> memoryview:
    return memoryview(bytearray(batch)) if batch.readonly else batch


def _target_codec(config: LogConfig, header: BatchHeader) -> int:
    if config.compression_type == "producer":
        return header.codec
    if config.compression_type == "uncompressed":
        return NONE
    return CODEC_NAMES.index(config.compression_type)


def _level(config: LogConfig, codec: int) -> int | None:
    levels = {
        GZIP: config.compression_gzip_level,
        LZ4: config.compression_lz4_level,
        ZSTD: config.compression_zstd_level,
    }
    return levels.get(codec)


def _payload(batch: memoryview, header: BatchHeader, inside_bytes_max: int | None) -> bytes:
    size_bytes_max = DECOMPRESSED_BYTES_MAX if inside_bytes_max is None else inside_bytes_max
    try:
        return read_payload(batch, header, size_bytes_max=size_bytes_max)
    except DecompressedTooLarge as error:
        if inside_bytes_max is not None:
            raise LookNeeded from None
        raise BatchRefused(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from None
    except CorruptBatch as error:
        raise BatchRefused(ErrorCode.UNKNOWN_SERVER_ERROR, reason=str(error)) from None


def _check_records(
    payload: bytes, header: BatchHeader, config: LogConfig, now_ms: int, tp: TopicPartition, *, rebuilds: bool
) -> int:
    """Refuse the batch if one of its records is bad; the highest timestamp that was found."""
    deltas = None if header.is_append_time else skim(payload, header.count, needs_keys=config.compacts)
    span = None if deltas is None else deltas.span_from(header.base_timestamp)
    if span is not None and (span[0] >= NO_TIMESTAMP or not rebuilds):
        first, last = span
        if config.timestamp_is_append_time or (
            first >= now_ms - config.timestamp_before_max_ms and last <= now_ms + config.timestamp_after_max_ms
        ):
            return max(last, NO_TIMESTAMP)
    errors: list[tuple[int, str]] = []
    refused = 0
    has_bad_timestamp = False
    max_timestamp = min_timestamp = NO_TIMESTAMP
    index = -1
    for index, record in enumerate(_records(payload, header)):
        if record.timestamp > max_timestamp:
            max_timestamp = record.timestamp
        elif record.timestamp < min_timestamp:
            min_timestamp = record.timestamp
        if record.offset != index:
            raise BatchRefused(ErrorCode.INVALID_RECORD, reason=f"record {index} has offset {record.offset} in {tp}")
        if config.compacts and record.key is None:
            why = f"Compacted topic cannot accept message without key in topic partition {tp}"
        elif why := _timestamp_error(record, header, config, now_ms, rebuilds=rebuilds):
            has_bad_timestamp = True
        else:
            continue
        refused += 1
        if len(errors) < RECORD_ERRORS_MAX:
            errors.append((index, why))
    if refused:
        raise _refused_records(errors, refused, has_bad_timestamp)
    if rebuilds and min_timestamp < NO_TIMESTAMP:  # Kafka keeps such a record, but can't write it anew
        raise BatchRefused(ErrorCode.UNKNOWN_SERVER_ERROR, reason=f"Invalid negative timestamp {min_timestamp}")
    return max_timestamp


def _records(payload: bytes, header: BatchHeader) -> Iterator[Record]:
    try:
        yield from iter_payload(payload, header)
    except CorruptBatch as error:
        raise BatchRefused(ErrorCode.INVALID_RECORD, reason=str(error)) from None


def _timestamp_error(record: Record, header: BatchHeader, config: LogConfig, now_ms: int, *, rebuilds: bool) -> str:
    """Empty when the record's time is fine."""
    if not config.timestamp_is_append_time and record.timestamp != NO_TIMESTAMP:
        age_ms = wrapped(now_ms - record.timestamp)
        if age_ms <= config.timestamp_before_max_ms and wrapped(-age_ms) <= config.timestamp_after_max_ms:
            return ""
        earliest = wrapped(now_ms - config.timestamp_before_max_ms)
        latest = wrapped(now_ms + config.timestamp_after_max_ms)
        return (
            f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. "
            f"The timestamp should be within [{earliest}, {latest}]"
        )
    if header.is_append_time:
        return (
            f"Invalid timestamp type in message {_describe(record, header, rebuilds=rebuilds)}. "
            "Producer should not set timestamp type to LogAppendTime."
        )
    return ""


def _describe(record: Record, header: BatchHeader, *, rebuilds: bool) -> str:
    """The record as Kafka prints it: by another name, and null as -1, when it only skims a compressed batch."""
    name, null = ("DefaultRecord", 0) if header.codec == NONE or rebuilds else ("PartialDefaultRecord", -1)
    key_bytes = null if record.key is None else len(record.key)
    value_bytes = null if record.value is None else len(record.value)
    times = f"offset={record.offset}, timestamp={record.timestamp}"
    return f"{name}({times}, key={key_bytes} bytes, value={value_bytes} bytes)"


def _refused_records(errors: list[tuple[int, str]], refused: int, has_bad_timestamp: bool) -> BatchRefused:
    if has_bad_timestamp:
        message = "One or more records have been rejected due to invalid timestamp"
        return BatchRefused(ErrorCode.INVALID_TIMESTAMP, message, errors)
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{why}')" for index, why in errors[:3])
    message = (
        f"One or more records have been rejected due to {refused} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )
    return BatchRefused(ErrorCode.INVALID_RECORD, message, errors)
