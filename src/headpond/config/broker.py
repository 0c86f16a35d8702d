"""The broker's settings as the code uses them: one frozen object per concern, parsed once.

Kafka's names stay in ``config/``: nobody else looks a setting up by name. A dynamic change delivers a new
``BrokerSettings``. The classes are frozen structs, not dataclasses, which cost 2 ms each at start-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from headpond.config.compaction import CompactionSettings
from headpond.config.definition import INT_MAX, ConfigError, Value, shortened, trimmed, whole_number
from headpond.config.effective import Effective
from headpond.config.groups import GroupSettings
from headpond.config.listeners import Listener, parse_address, parse_listeners
from headpond.config.log import LogConfig
from headpond.config.topics import log_defaults, topic_config
from headpond.config.transactions import TransactionSettings

__all__ = [
    "BrokerSettings",
    "FetchSettings",
    "MetricsSettings",
    "NetworkSettings",
    "OutputSettings",
    "StorageSettings",
    "TopicDefaults",
    "build",
    "settings_with_dynamic",
    "topic_config",
]

SESSION_EVICTION_MIN_MS = 120_000
"""A fetch session that was used within this time makes no room for a new one. Kafka has no setting for it either."""
CLEANER_BUFFER_BYTES = 1_048_576
"""Each thread of compaction needs more than this: Kafka's rule and its words."""
ASSIGNORS = ("uniform", "range")
"""Kafka also takes the names of Java classes."""
_NOBODY: Mapping[str, int] = MappingProxyType({})


class NetworkSettings(msgspec.Struct, frozen=True):
    listeners: tuple[Listener, ...]
    request_bytes_max: int = 104_857_600  # socket.request.max.bytes: one frame
    connections_max: int = 2_147_483_647
    connections_per_ip_max: int = 2_147_483_647
    connections_per_ip: Mapping[str, int] = _NOBODY  # exceptions, by address
    idle_ms_max: int | None = 600_000  # connections.max.idle.ms; None: never closed for idleness
    backlog: int = 50
    request_memory_bytes_max: int = 536_870_912  # partly received requests, over all connections
    response_memory_bytes_max: int = 536_870_912  # answers that can't leave yet, over all connections
    inflight_max: int = 128  # requests of one connection that are not answered yet; then reading pauses


class FetchSettings(msgspec.Struct, frozen=True):
    bytes_max: int = 57_671_680  # fetch.max.bytes: one response
    sessions_max: int = 1_000
    session_eviction_min_ms: int = SESSION_EVICTION_MIN_MS


class TopicDefaults(msgspec.Struct, frozen=True):
    """How topics come and go; what their logs obey is in ``BrokerSettings.log``."""

    partitions: int = 1
    replication_factor: int = 1
    auto_create: bool = True
    deletion: bool = True  # delete.topic.enable
    described_partitions_max: int = 2_000  # max.request.partition.size.limit: one DescribeTopicPartitions answer


class StorageSettings(msgspec.Struct, frozen=True):
    data_dir: str = "headpond-data"
    flush: str = "ack"  # headpond.flush: ack, interval or os
    retention_check_interval_ms: int = 300_000
    first_task_delay_ms: int = 30_000  # retention and checkpoints start this long after the broker
    recovery_threads: int = 2
    producer_id_expiration_ms: int = 86_400_000
    producer_id_check_interval_ms: int = 600_000
    compaction: CompactionSettings = CompactionSettings()


class MetricsSettings(msgspec.Struct, frozen=True):
    host: str
    port: int  # 0 picks a free one
    partitions_max: int = 10_000  # with series of their own; the others are counted together


class OutputSettings(msgspec.Struct, frozen=True):
    """How the broker's own log lines look."""

    format: str = "text"
    level: str = "WARNING"


class BrokerSettings(msgspec.Struct, frozen=True):
    broker_id: int
    network: NetworkSettings
    fetch: FetchSettings
    topics: TopicDefaults
    storage: StorageSettings
    groups: GroupSettings
    transactions: TransactionSettings
    log: LogConfig
    rack: str | None
    metrics: MetricsSettings | None
    output: OutputSettings
    effective: Effective
    """Where the values come from: what DescribeConfigs and ``headpond config`` show."""


def settings_with_dynamic(
    effective: Effective, default_configs: Mapping[str, str], broker_configs: Mapping[str, str]
) -> BrokerSettings:
    """The settings under these dynamic changes. Pure. Raises ``ConfigError`` when a stored value cannot be used."""
    return effective.with_dynamic(default_configs, broker_configs).settings


def build(effective: Effective) -> BrokerSettings:
    """Parse everything, and check what one setting demands of another. Raises ``ConfigError``."""
    read = _Reader(effective)
    _check_times(effective)
    return BrokerSettings(
        broker_id=read.number("node.id"),
        network=_network(read),
        fetch=FetchSettings(
            bytes_max=read.number("fetch.max.bytes"),
            sessions_max=read.number("max.incremental.fetch.session.cache.slots"),
        ),
        topics=TopicDefaults(
            partitions=read.number("num.partitions"),
            replication_factor=read.number("default.replication.factor"),
            auto_create=read.flag("auto.create.topics.enable"),
            deletion=read.flag("delete.topic.enable"),
            described_partitions_max=read.number("max.request.partition.size.limit"),
        ),
        storage=_storage(read),
        groups=_groups(read),
        transactions=_transactions(read),
        log=log_defaults(effective),
        rack=read.text("broker.rack") or None,
        metrics=_metrics(read),
        output=OutputSettings(format=read.text("headpond.log.format"), level=read.text("headpond.log.level")),
        effective=effective,
    )


def _network(read: _Reader) -> NetworkSettings:
    advertised = read.value("advertised.listeners")
    request_bytes_max = read.number("socket.request.max.bytes")
    memory_setting = "queued.max.request.bytes"  # Kafka's name for the bound; ours has a default
    if read.number(memory_setting) <= 0:
        memory_setting = "headpond.request.memory.bytes"
    if read.number(memory_setting) < request_bytes_max:
        raise ConfigError(
            f"{memory_setting} ({read.number(memory_setting)}) must be at least socket.request.max.bytes "
            f"({request_bytes_max}), or no request of that size could ever be received"
        )
    _check_idle_time(read)
    overrides = _per_ip(read.text("max.connections.per.ip.overrides"))
    if read.number("max.connections.per.ip") == 0 and not overrides:
        raise ConfigError("max.connections.per.ip can be 0 only if max.connections.per.ip.overrides is set")
    return NetworkSettings(
        listeners=parse_listeners(
            read.words("listeners"),
            advertised if isinstance(advertised, tuple) else None,
            read.text("listener.security.protocol.map"),
            controller_names=[name.upper() for name in read.words("controller.listener.names")],
            hostname=read.effective.hostname,
        ),
        request_bytes_max=request_bytes_max,
        connections_max=read.number("max.connections"),
        connections_per_ip_max=read.number("max.connections.per.ip"),
        connections_per_ip=overrides,
        idle_ms_max=_unless_negative(read.number("connections.max.idle.ms")),
        backlog=read.number("socket.listen.backlog.size"),
        request_memory_bytes_max=read.number(memory_setting),
        response_memory_bytes_max=read.number("headpond.response.memory.bytes"),
        inflight_max=read.number("headpond.connection.inflight.max"),
    )


def _check_idle_time(read: _Reader) -> None:
    idle_ms, delay_ms = read.number("connections.max.idle.ms"), read.number("connection.failed.authentication.delay.ms")
    if 0 <= idle_ms <= delay_ms:
        raise ConfigError(
            f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
            f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing out"
        )


def _metrics(read: _Reader) -> MetricsSettings | None:
    address = read.text("headpond.metrics.listen")
    if not address:
        return None
    host, port = parse_address(address)
    return MetricsSettings(host, port, read.number("headpond.metrics.partitions.max"))


def _storage(read: _Reader) -> StorageSettings:
    folders = read.words("log.dirs")
    if len(folders) != 1:
        raise ConfigError(f"log.dirs must name one folder, not {len(folders)}: {', '.join(folders) or 'none'}")
    return StorageSettings(
        data_dir=folders[0],
        flush=read.text("headpond.flush"),
        retention_check_interval_ms=read.number("log.retention.check.interval.ms"),
        first_task_delay_ms=read.number("log.initial.task.delay.ms"),
        recovery_threads=read.number("num.recovery.threads.per.data.dir"),
        producer_id_expiration_ms=read.number("producer.id.expiration.ms"),
        producer_id_check_interval_ms=read.number("producer.id.expiration.check.interval.ms"),
        compaction=_compaction(read),
    )


def _groups(read: _Reader) -> GroupSettings:
    _check_group_times(read)
    return GroupSettings(
        session_timeout_ms_min=read.number("group.min.session.timeout.ms"),
        session_timeout_ms_max=read.number("group.max.session.timeout.ms"),
        members_max=read.number("group.max.size"),
        initial_rebalance_delay_ms=read.number("group.initial.rebalance.delay.ms"),
        has_consumer_groups=_has_consumer_groups(read),
        consumer_session_timeout_ms=read.number("group.consumer.session.timeout.ms"),
        consumer_session_timeout_ms_min=read.number("group.consumer.min.session.timeout.ms"),
        consumer_session_timeout_ms_max=read.number("group.consumer.max.session.timeout.ms"),
        consumer_heartbeat_interval_ms=read.number("group.consumer.heartbeat.interval.ms"),
        consumer_heartbeat_interval_ms_min=read.number("group.consumer.min.heartbeat.interval.ms"),
        consumer_heartbeat_interval_ms_max=read.number("group.consumer.max.heartbeat.interval.ms"),
        consumer_assignment_interval_ms=read.number("group.consumer.assignment.interval.ms"),
        consumer_assignment_interval_ms_min=read.number("group.consumer.min.assignment.interval.ms"),
        consumer_assignment_interval_ms_max=read.number("group.consumer.max.assignment.interval.ms"),
        consumer_members_max=read.number("group.consumer.max.size"),
        consumer_assignors=_assignors(read),
        consumer_migration_policy=read.text("group.consumer.migration.policy").lower(),
        consumer_regex_refresh_interval_ms=read.number("group.consumer.regex.refresh.interval.ms"),
        metadata_characters_max=read.number("offset.metadata.max.bytes"),
        commit_timeout_ms=read.number("offsets.commit.timeout.ms"),
        retention_ms=read.number("offsets.retention.minutes") * 60_000,
        retention_check_interval_ms=read.number("offsets.retention.check.interval.ms"),
        topic_partitions=read.number("offsets.topic.num.partitions"),
        topic_replication_factor=read.number("offsets.topic.replication.factor"),
        topic_segment_bytes=read.number("offsets.topic.segment.bytes"),
    )


def _assignors(read: _Reader) -> tuple[str, ...]:
    names = read.words("group.consumer.assignors")
    unknown = [name for name in names if name not in ASSIGNORS]
    if unknown or not names:
        why = f"unknown assignor '{shortened(unknown[0])}'" if unknown else "it must not be empty"
        raise ConfigError(f"group.consumer.assignors: {why}, there are {' and '.join(ASSIGNORS)}")
    return names


def _has_consumer_groups(read: _Reader) -> bool:
    protocols = read.words("group.coordinator.rebalance.protocols")
    if "classic" not in protocols:
        raise ConfigError("Disabling the 'classic' protocol is not supported.")
    return "consumer" in protocols


def _transactions(read: _Reader) -> TransactionSettings:
    return TransactionSettings(
        timeout_ms_max=read.number("transaction.max.timeout.ms"),
        id_expiration_ms=read.number("transactional.id.expiration.ms"),
        abort_check_interval_ms=read.number("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        expiry_check_interval_ms=read.number("transaction.remove.expired.transaction.cleanup.interval.ms"),
        verifies_partitions=read.flag("transaction.partition.verification.enable"),
        add_retry_ms=read.number("add.partitions.to.txn.retry.backoff.ms"),
        add_retries_for_ms=read.number("add.partitions.to.txn.retry.backoff.max.ms"),
        topic_partitions=read.number("transaction.state.log.num.partitions"),
        topic_replication_factor=read.number("transaction.state.log.replication.factor"),
        topic_min_in_sync=read.number("transaction.state.log.min.isr"),
        topic_segment_bytes=read.number("transaction.state.log.segment.bytes"),
    )


def _check_group_times(read: _Reader) -> None:
    """Kafka's words for what does not go together."""
    for name in ("session.timeout", "heartbeat.interval", "assignment.interval"):
        most, least, used = (f"group.consumer.{each}{name}.ms" for each in ("max.", "min.", ""))
        if read.number(most) < read.number(least):
            raise ConfigError(f"{most} must be greater than or equal to {least}")
        if read.number(used) < read.number(least):
            raise ConfigError(f"{used} must be greater than or equal to {least}")
        if read.number(used) > read.number(most):
            raise ConfigError(f"{used} must be less than or equal to {most}")
    if read.number("group.consumer.heartbeat.interval.ms") >= read.number("group.consumer.session.timeout.ms"):
        raise ConfigError("group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms")


def _compaction(read: _Reader) -> CompactionSettings:
    threads = read.number("log.cleaner.threads")
    buffer_bytes = read.number("log.cleaner.dedupe.buffer.size")
    if buffer_bytes // max(1, threads) <= CLEANER_BUFFER_BYTES:
        raise ConfigError("log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
    return CompactionSettings(
        is_enabled=read.flag("log.cleaner.enable") and threads > 0,
        threads=max(1, threads),
        dedupe_buffer_bytes=buffer_bytes,
        load_factor=min(1.0, max(0.0, read.fraction("log.cleaner.io.buffer.load.factor"))),  # the buffer stays a bound
        io_buffer_bytes=read.number("log.cleaner.io.buffer.size"),
        bytes_per_s_max=read.fraction("log.cleaner.io.max.bytes.per.second"),
        backoff_ms=read.number("log.cleaner.backoff.ms"),
    )


def _check_times(effective: Effective) -> None:
    """Kafka checks these on the sum of their names, so no single setting can."""
    for topic_name, broker_name, least in (
        ("segment.ms", "log.roll.ms", 1),
        ("segment.jitter.ms", "log.roll.jitter.ms", 0),
    ):
        value = effective.topic_value(topic_name)
        if isinstance(value, int) and value < least:
            raise ConfigError(f"{broker_name} must be greater than or equal to {least}")
    if effective.topic_value("retention.ms") == 0:
        raise ConfigError("log.retention.ms must be unlimited (-1) or, greater than or equal to 1")


def _per_ip(text: str) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for pair in text.rstrip(", ").split(",") if text.strip(", ") else ():
        host, colon, number = map(trimmed, pair.rpartition(":"))
        count = whole_number(number, INT_MAX)
        if not colon or not host or count is None:
            raise ConfigError(f"max.connections.per.ip.overrides: '{shortened(trimmed(pair))}' should be HOST:COUNT")
        found[host] = count
    return MappingProxyType(found)


def _unless_negative(value: int) -> int | None:
    return None if value < 0 else value


class _Reader:
    """Values by their Kafka names, with the type that the setting promises."""

    def __init__(self, effective: Effective) -> None:
        self.effective = effective

    def value(self, name: str) -> Value:
        return self.effective.value(name)

    def number(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), name
        return value

    def fraction(self, name: str) -> float:
        value = self.value(name)
        assert isinstance(value, int | float), name
        return float(value)

    def flag(self, name: str) -> bool:
        return self.value(name) is True

    def text(self, name: str) -> str:
        value = self.value(name)
        return value if isinstance(value, str) else ""

    def words(self, name: str) -> tuple[str, ...]:
        value = self.value(name)
        return value if isinstance(value, tuple) else ()
