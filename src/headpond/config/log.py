"""The settings of one topic's logs, parsed once; a dynamic change delivers a new object."""

from __future__ import annotations

import msgspec


class LogConfig(msgspec.Struct, frozen=True, gc=False):
    """What a partition's log obeys. ``None`` means unlimited where Kafka writes -1. Defaults are Kafka's."""

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10_485_760
    index_interval_bytes: int = 4_096
    retention_bytes: int | None = None
    retention_ms: int | None = 604_800_000
    max_message_bytes: int = 1_048_588
    timestamp_is_append_time: bool = False  # message.timestamp.type=LogAppendTime
    timestamp_before_max_ms: int = 9_223_372_036_854_775_807
    timestamp_after_max_ms: int = 3_600_000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    deletes: bool = True  # cleanup.policy has "delete"
    compacts: bool = False  # cleanup.policy has "compact"
    delete_retention_ms: int = 86_400_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = 9_223_372_036_854_775_807
    file_delete_delay_ms: int = 60_000
    flush_messages: int = 9_223_372_036_854_775_807
    flush_ms: int = 9_223_372_036_854_775_807
    validates_records: bool = False  # headpond.validate.records: look inside every batch, as Kafka does
