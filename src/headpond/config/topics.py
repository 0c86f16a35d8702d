"""From topic settings to the ``LogConfig`` that a partition's log obeys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headpond.config.definition import Value
from headpond.config.known.of_topics import TOPIC_SETTINGS
from headpond.config.log import LogConfig

if TYPE_CHECKING:
    from headpond.config.broker import BrokerSettings
    from headpond.config.effective import Effective

# The settings whose value goes into the field as it is.
_PLAIN = {
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "segment.jitter.ms": "segment_jitter_ms",
    "segment.index.bytes": "segment_index_bytes",
    "index.interval.bytes": "index_interval_bytes",
    "max.message.bytes": "max_message_bytes",
    "message.timestamp.before.max.ms": "timestamp_before_max_ms",
    "message.timestamp.after.max.ms": "timestamp_after_max_ms",
    "compression.type": "compression_type",
    "compression.gzip.level": "compression_gzip_level",
    "compression.lz4.level": "compression_lz4_level",
    "compression.zstd.level": "compression_zstd_level",
    "delete.retention.ms": "delete_retention_ms",
    "min.cleanable.dirty.ratio": "min_cleanable_dirty_ratio",
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
    "file.delete.delay.ms": "file_delete_delay_ms",
    "flush.messages": "flush_messages",
    "flush.ms": "flush_ms",
    "headpond.validate.records": "validates_records",
}


def log_defaults(effective: Effective) -> LogConfig:
    """What a topic without settings of its own gets from this broker. Raises ``ConfigError``."""
    names = (*_PLAIN, "retention.ms", "retention.bytes", "cleanup.policy", "message.timestamp.type")
    return LogConfig(**_fields({name: effective.topic_value(name) for name in names}))


def topic_config(overrides: Mapping[str, str], settings: BrokerSettings) -> LogConfig:
    """A topic's settings on top of the broker's. Unknown names are left out: the store may hold what a newer broker
    wrote. Raises ``ConfigError`` for an invalid value."""
    known = {name: TOPIC_SETTINGS[name].parse(text) for name, text in overrides.items() if name in TOPIC_SETTINGS}
    return replace(settings.log, **_fields(known)) if known else settings.log


def _fields(values: Mapping[str, Value]) -> dict[str, Any]:
    fields: dict[str, Any] = {_PLAIN[name]: value for name, value in values.items() if name in _PLAIN}
    for name, field in (("retention.ms", "retention_ms"), ("retention.bytes", "retention_bytes")):
        if name in values:
            limit = values[name]
            fields[field] = None if isinstance(limit, int) and limit < 0 else limit
    if "cleanup.policy" in values:
        policy = values["cleanup.policy"] or ()
        assert isinstance(policy, tuple)
        fields["deletes"], fields["compacts"] = "delete" in policy, "compact" in policy
    if "message.timestamp.type" in values:
        fields["timestamp_is_append_time"] = values["message.timestamp.type"] == "LogAppendTime"
    if (small := values.get("internal.segment.bytes")) is not None:
        fields["segment_bytes"] = small
    return fields
