"""Every setting that a topic has in Kafka 4.3, and ours; each with the broker settings that give its default.

Data only. ``BROKER_NAMES`` lists, for each topic setting, the broker's names for it, the first that is set wins.
"""

from __future__ import annotations

from typing import NamedTuple

from headpond.config.definition import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    Setting,
    between,
    gzip_level,
    one_of,
    throttled_replicas,
)

SEGMENT_BYTES_MIN = 1_048_576
"""Kafka 4.x refuses smaller segments; its tests and ours use ``internal.segment.bytes``."""

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
POLICIES = ("compact", "delete")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


class BrokerName(NamedTuple):
    name: str
    unit_ms: int = 1
    """What one unit of the broker's setting is in the topic's: hours and minutes become milliseconds."""


_ROWS = (
    Setting("cleanup.policy", LIST, "delete", one_of(*POLICIES)),
    Setting("compression.gzip.level", INT, "-1", gzip_level),
    Setting("compression.lz4.level", INT, "9", between(1, 17)),
    Setting("compression.type", STRING, "producer", one_of(*COMPRESSION_TYPES)),
    Setting("compression.zstd.level", INT, "3", between(-131_072, 22)),
    Setting("delete.retention.ms", LONG, "86400000", between(0)),
    Setting("file.delete.delay.ms", LONG, "60000", between(0)),
    Setting("flush.messages", LONG, str(LONG_MAX), between(1)),
    Setting("flush.ms", LONG, str(LONG_MAX), between(0)),
    Setting("follower.replication.throttled.replicas", LIST, "", throttled_replicas, used=False),
    Setting("index.interval.bytes", INT, "4096", between(0)),
    Setting("internal.segment.bytes", INT, None, internal=True),
    Setting("leader.replication.throttled.replicas", LIST, "", throttled_replicas, used=False),
    Setting("local.retention.bytes", LONG, "-2", between(-2), used=False),
    Setting("local.retention.ms", LONG, "-2", between(-2), used=False),
    Setting("max.compaction.lag.ms", LONG, str(LONG_MAX), between(1)),
    Setting("max.message.bytes", INT, "1048588", between(0)),
    Setting("message.timestamp.after.max.ms", LONG, "3600000", between(0)),
    Setting("message.timestamp.before.max.ms", LONG, str(LONG_MAX), between(0)),
    Setting("message.timestamp.type", STRING, "CreateTime", one_of(*TIMESTAMP_TYPES)),
    Setting("min.cleanable.dirty.ratio", DOUBLE, "0.5", between(0, 1)),
    Setting("min.compaction.lag.ms", LONG, "0", between(0)),
    Setting("min.insync.replicas", INT, "1", between(1), used=False),
    Setting("headpond.validate.records", BOOLEAN, "false"),
    Setting("preallocate", BOOLEAN, "false", used=False),
    Setting("remote.log.copy.disable", BOOLEAN, "false", used=False),
    Setting("remote.log.delete.on.disable", BOOLEAN, "false", used=False),
    Setting("remote.storage.enable", BOOLEAN, "false", used=False),
    Setting("retention.bytes", LONG, "-1"),
    Setting("retention.ms", LONG, "604800000", between(-1)),
    Setting("segment.bytes", INT, "1073741824", between(SEGMENT_BYTES_MIN)),
    Setting("segment.index.bytes", INT, "10485760", between(4)),
    Setting("segment.jitter.ms", LONG, "0", between(0)),
    Setting("segment.ms", LONG, "604800000", between(1)),
    Setting("unclean.leader.election.enable", BOOLEAN, "false", used=False),
)

TOPIC_SETTINGS: dict[str, Setting] = {row.name: row for row in _ROWS}

BROKER_NAMES: dict[str, tuple[BrokerName, ...]] = {
    "cleanup.policy": (BrokerName("log.cleanup.policy"),),
    "compression.gzip.level": (BrokerName("compression.gzip.level"),),
    "compression.lz4.level": (BrokerName("compression.lz4.level"),),
    "compression.type": (BrokerName("compression.type"),),
    "compression.zstd.level": (BrokerName("compression.zstd.level"),),
    "delete.retention.ms": (BrokerName("log.cleaner.delete.retention.ms"),),
    "file.delete.delay.ms": (BrokerName("log.segment.delete.delay.ms"),),
    "flush.messages": (BrokerName("log.flush.interval.messages"),),
    "flush.ms": (BrokerName("log.flush.interval.ms"), BrokerName("log.flush.scheduler.interval.ms")),
    "index.interval.bytes": (BrokerName("log.index.interval.bytes"),),
    "local.retention.bytes": (BrokerName("log.local.retention.bytes"),),
    "local.retention.ms": (BrokerName("log.local.retention.ms"),),
    "max.compaction.lag.ms": (BrokerName("log.cleaner.max.compaction.lag.ms"),),
    "max.message.bytes": (BrokerName("message.max.bytes"),),
    "message.timestamp.after.max.ms": (BrokerName("log.message.timestamp.after.max.ms"),),
    "message.timestamp.before.max.ms": (BrokerName("log.message.timestamp.before.max.ms"),),
    "message.timestamp.type": (BrokerName("log.message.timestamp.type"),),
    "min.cleanable.dirty.ratio": (BrokerName("log.cleaner.min.cleanable.ratio"),),
    "min.compaction.lag.ms": (BrokerName("log.cleaner.min.compaction.lag.ms"),),
    "min.insync.replicas": (BrokerName("min.insync.replicas"),),
    "headpond.validate.records": (BrokerName("headpond.validate.records"),),
    "preallocate": (BrokerName("log.preallocate"),),
    "retention.bytes": (BrokerName("log.retention.bytes"),),
    "retention.ms": (
        BrokerName("log.retention.ms"),
        BrokerName("log.retention.minutes", _MINUTE_MS),
        BrokerName("log.retention.hours", _HOUR_MS),
    ),
    "segment.bytes": (BrokerName("log.segment.bytes"),),
    "segment.index.bytes": (BrokerName("log.index.size.max.bytes"),),
    "segment.jitter.ms": (BrokerName("log.roll.jitter.ms"), BrokerName("log.roll.jitter.hours", _HOUR_MS)),
    "segment.ms": (BrokerName("log.roll.ms"), BrokerName("log.roll.hours", _HOUR_MS)),
    "unclean.leader.election.enable": (BrokerName("unclean.leader.election.enable"),),
}
