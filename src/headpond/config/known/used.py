"""The broker settings that mean something here: Kafka's, by Kafka's names, and our own under ``headpond.``.

Data only. Where a default is not Kafka's, ``OWN_DEFAULTS`` says why. The rest of Kafka's settings, which are accepted
without effect, are in ``accepted.py``.
"""

from __future__ import annotations

from headpond.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    SHORT,
    STRING,
    ConfigError,
    Setting,
    Value,
    between,
    gzip_level,
    invalid,
    one_of,
    one_of_any_case,
)
from headpond.config.known.of_topics import COMPRESSION_TYPES, POLICIES, SEGMENT_BYTES_MIN, TIMESTAMP_TYPES

FLUSH_MODES = ("ack", "interval", "os")

OWN_DEFAULTS: dict[str, str] = {
    "node.id": "Kafka has no default; one broker needs none of its own choosing",
    "listeners": "Kafka listens on every interface; a broker without passwords should not, unless it is asked to",
    "log.dir": "Kafka's default is under /tmp, where data does not last",
    "controller.listener.names": "Kafka has no default; there is no controller listener here",
    "process.roles": "Kafka has no default; every broker here is one",
}

# The listeners cannot change while the broker runs (in Kafka they can): changing them needs a restart.
_PROTOCOL_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"


def _an_address(name: str, value: Value) -> None:
    from headpond.config.listeners import parse_address

    try:
        parse_address(str(value))
    except ConfigError as error:
        raise invalid(name, value, str(error)) from None


_ROWS = (
    Setting("add.partitions.to.txn.retry.backoff.max.ms", INT, "100", between(0)),
    Setting("add.partitions.to.txn.retry.backoff.ms", INT, "20", between(1)),
    Setting("advertised.listeners", LIST, None),
    Setting("auto.create.topics.enable", BOOLEAN, "true"),
    Setting("broker.id", INT, "-1"),
    Setting("broker.rack", STRING, None),
    Setting("compression.gzip.level", INT, "-1", gzip_level, CLUSTER_WIDE),
    Setting("compression.lz4.level", INT, "9", between(1, 17), CLUSTER_WIDE),
    Setting("compression.type", STRING, "producer", one_of(*COMPRESSION_TYPES), CLUSTER_WIDE),
    Setting("compression.zstd.level", INT, "3", between(-131_072, 22), CLUSTER_WIDE),
    Setting("connection.failed.authentication.delay.ms", INT, "100", between(0), used=False),
    Setting("connections.max.idle.ms", LONG, "600000"),
    Setting("controller.listener.names", LIST, ""),
    Setting("default.replication.factor", INT, "1"),
    Setting("delete.topic.enable", BOOLEAN, "true"),
    Setting("fetch.max.bytes", INT, "57671680", between(1024)),
    Setting("group.consumer.assignment.interval.ms", INT, "1000", between(0), CLUSTER_WIDE),
    Setting("group.consumer.assignors", LIST, "uniform,range"),
    Setting("group.consumer.heartbeat.interval.ms", INT, "5000", between(1)),
    Setting("group.consumer.max.assignment.interval.ms", INT, "15000", between(0)),
    Setting("group.consumer.max.heartbeat.interval.ms", INT, "15000", between(1)),
    Setting("group.consumer.max.session.timeout.ms", INT, "60000", between(1)),
    Setting("group.consumer.max.size", INT, str(INT_MAX), between(1)),
    Setting(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        one_of_any_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
    ),
    Setting("group.consumer.min.assignment.interval.ms", INT, "0", between(0)),
    Setting("group.consumer.min.heartbeat.interval.ms", INT, "5000", between(1)),
    Setting("group.consumer.min.session.timeout.ms", INT, "45000", between(1)),
    Setting("group.consumer.regex.refresh.interval.ms", INT, "600000", between(10_000), internal=True),
    Setting("group.consumer.session.timeout.ms", INT, "45000", between(1)),
    Setting(
        "group.coordinator.rebalance.protocols",
        LIST,
        "classic,consumer,streams",
        one_of("consumer", "classic", "share", "streams"),
    ),
    Setting("group.initial.rebalance.delay.ms", INT, "3000"),
    Setting("group.max.session.timeout.ms", INT, "1800000"),
    Setting("group.max.size", INT, str(INT_MAX), between(1)),
    Setting("group.min.session.timeout.ms", INT, "6000"),
    Setting("listener.security.protocol.map", STRING, _PROTOCOL_MAP),
    Setting("listeners", LIST, "PLAINTEXT://127.0.0.1:9092"),
    Setting("log.cleaner.backoff.ms", LONG, "15000", between(0), CLUSTER_WIDE),
    Setting("log.cleaner.dedupe.buffer.size", LONG, "134217728", mode=CLUSTER_WIDE),
    Setting("log.cleaner.delete.retention.ms", LONG, "86400000", between(0), CLUSTER_WIDE),
    Setting("log.cleaner.enable", BOOLEAN, "true"),
    Setting("log.cleaner.io.buffer.load.factor", DOUBLE, "0.9", mode=CLUSTER_WIDE),
    Setting("log.cleaner.io.buffer.size", INT, "524288", between(0), CLUSTER_WIDE),
    Setting("log.cleaner.io.max.bytes.per.second", DOUBLE, "1.7976931348623157E308", mode=CLUSTER_WIDE),
    Setting("log.cleaner.max.compaction.lag.ms", LONG, str(LONG_MAX), between(1), CLUSTER_WIDE),
    Setting("log.cleaner.min.cleanable.ratio", DOUBLE, "0.5", between(0, 1), CLUSTER_WIDE),
    Setting("log.cleaner.min.compaction.lag.ms", LONG, "0", between(0), CLUSTER_WIDE),
    Setting("log.cleaner.threads", INT, "1", between(0), CLUSTER_WIDE),
    Setting("log.cleanup.policy", LIST, "delete", one_of(*POLICIES), CLUSTER_WIDE),
    Setting("log.dir", LIST, "headpond-data"),
    Setting("log.dirs", LIST, None),
    Setting("log.flush.interval.messages", LONG, str(LONG_MAX), between(1), CLUSTER_WIDE),
    Setting("log.flush.interval.ms", LONG, None, mode=CLUSTER_WIDE),
    Setting("log.flush.offset.checkpoint.interval.ms", INT, "60000", between(0), used=False),
    Setting("log.flush.scheduler.interval.ms", LONG, str(LONG_MAX)),
    Setting("log.flush.start.offset.checkpoint.interval.ms", INT, "60000", between(0), used=False),
    Setting("log.index.interval.bytes", INT, "4096", between(0), CLUSTER_WIDE),
    Setting("log.index.size.max.bytes", INT, "10485760", between(4), CLUSTER_WIDE),
    Setting("log.initial.task.delay.ms", LONG, "30000", between(0), internal=True),
    Setting("log.message.timestamp.after.max.ms", LONG, "3600000", between(0), CLUSTER_WIDE),
    Setting("log.message.timestamp.before.max.ms", LONG, str(LONG_MAX), between(0), CLUSTER_WIDE),
    Setting("log.message.timestamp.type", STRING, "CreateTime", one_of(*TIMESTAMP_TYPES), CLUSTER_WIDE),
    Setting("log.preallocate", BOOLEAN, "false", mode=CLUSTER_WIDE, used=False),
    Setting("log.retention.bytes", LONG, "-1", mode=CLUSTER_WIDE),
    Setting("log.retention.check.interval.ms", LONG, "300000", between(1)),
    Setting("log.retention.hours", INT, "168"),
    Setting("log.retention.minutes", INT, None),
    Setting("log.retention.ms", LONG, None, mode=CLUSTER_WIDE),
    Setting("log.roll.hours", INT, "168", between(1)),
    Setting("log.roll.jitter.hours", INT, "0", between(0)),
    Setting("log.roll.jitter.ms", LONG, None, mode=CLUSTER_WIDE),
    Setting("log.roll.ms", LONG, None, mode=CLUSTER_WIDE),
    Setting("log.segment.bytes", INT, "1073741824", between(SEGMENT_BYTES_MIN), CLUSTER_WIDE),
    Setting("log.segment.delete.delay.ms", LONG, "60000", between(0), CLUSTER_WIDE),
    Setting("max.connections", INT, str(INT_MAX), between(0), CLUSTER_WIDE),
    Setting("max.connections.per.ip", INT, str(INT_MAX), between(0), CLUSTER_WIDE),
    Setting("max.connections.per.ip.overrides", STRING, "", mode=CLUSTER_WIDE),
    Setting("max.incremental.fetch.session.cache.slots", INT, "1000", between(0)),
    Setting("max.request.partition.size.limit", INT, "2000", between(1)),
    Setting("message.max.bytes", INT, "1048588", between(0), CLUSTER_WIDE),
    Setting("min.insync.replicas", INT, "1", between(1), CLUSTER_WIDE, used=False),
    Setting("node.id", INT, "1", between(0)),
    Setting("num.partitions", INT, "1", between(1)),
    Setting("num.recovery.threads.per.data.dir", INT, "2", between(1), CLUSTER_WIDE),
    Setting("offset.metadata.max.bytes", INT, "4096"),
    Setting("offsets.commit.timeout.ms", INT, "5000", between(1)),
    Setting("offsets.retention.check.interval.ms", LONG, "600000", between(1)),
    Setting("offsets.retention.minutes", INT, "10080", between(1)),
    Setting("offsets.topic.num.partitions", INT, "50", between(1)),
    Setting("offsets.topic.replication.factor", SHORT, "3", between(1)),
    Setting("offsets.topic.segment.bytes", INT, "104857600", between(1)),
    Setting("headpond.connection.inflight.max", INT, "128", between(1)),
    Setting("headpond.flush", STRING, "ack", one_of(*FLUSH_MODES)),
    Setting("headpond.log.format", STRING, "text", one_of("text", "json")),
    Setting("headpond.log.level", STRING, "WARNING", one_of_any_case("DEBUG", "INFO", "WARNING", "WARN", "ERROR")),
    Setting("headpond.metrics.listen", STRING, None, _an_address),
    Setting("headpond.metrics.partitions.max", INT, "10000", between(0)),
    Setting("headpond.request.memory.bytes", LONG, "536870912", between(1_048_576)),
    Setting("headpond.response.memory.bytes", LONG, "536870912", between(1_048_576)),
    Setting("headpond.validate.records", BOOLEAN, "false", mode=CLUSTER_WIDE),
    Setting("producer.id.expiration.check.interval.ms", INT, "600000", between(1), internal=True),
    Setting("producer.id.expiration.ms", INT, "86400000", between(1), CLUSTER_WIDE),
    Setting("queued.max.request.bytes", LONG, "-1"),
    Setting("replica.high.watermark.checkpoint.interval.ms", LONG, "5000", used=False),
    Setting("socket.listen.backlog.size", INT, "50", between(1)),
    Setting("socket.receive.buffer.bytes", INT, "102400", used=False),
    Setting("socket.request.max.bytes", INT, "104857600", between(1)),
    Setting("socket.send.buffer.bytes", INT, "102400", used=False),
    Setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, "10000", between(1)),
    Setting("transaction.max.timeout.ms", INT, "900000", between(1)),
    Setting("transaction.partition.verification.enable", BOOLEAN, "true", mode=CLUSTER_WIDE),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", INT, "3600000", between(1)),
    Setting("transaction.state.log.min.isr", INT, "2", between(1)),
    Setting("transaction.state.log.num.partitions", INT, "50", between(1)),
    Setting("transaction.state.log.replication.factor", SHORT, "3", between(1)),
    Setting("transaction.state.log.segment.bytes", INT, "104857600", between(1)),
    Setting("transactional.id.expiration.ms", INT, "604800000", between(1)),
    Setting("unclean.leader.election.enable", BOOLEAN, "false", mode=CLUSTER_WIDE, used=False),
)

USED_SETTINGS: dict[str, Setting] = {row.name: row for row in _ROWS}
