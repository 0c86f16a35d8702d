"""The names of the options, as in Spark's Kafka connector. Spark compares them without regard to case; so do we."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN = "subscribe", "subscribePattern", "assign"
STRATEGIES = (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)

STARTING_OFFSETS = "startingOffsets"
STARTING_OFFSETS_BY_TIMESTAMP = "startingOffsetsByTimestamp"
STARTING_TIMESTAMP = "startingTimestamp"
STARTING_STRATEGY = "startingOffsetsByTimestampStrategy"
ENDING_OFFSETS = "endingOffsets"
ENDING_OFFSETS_BY_TIMESTAMP = "endingOffsetsByTimestamp"
ENDING_TIMESTAMP = "endingTimestamp"
ENDINGS = (ENDING_OFFSETS, ENDING_OFFSETS_BY_TIMESTAMP, ENDING_TIMESTAMP)

MAX_OFFSETS_PER_TRIGGER = "maxOffsetsPerTrigger"
MIN_OFFSETS_PER_TRIGGER = "minOffsetsPerTrigger"
MAX_TRIGGER_DELAY = "maxTriggerDelay"
RATES = (MAX_OFFSETS_PER_TRIGGER, MIN_OFFSETS_PER_TRIGGER, MAX_TRIGGER_DELAY)
MIN_PARTITIONS = "minPartitions"
MAX_RECORDS_PER_PARTITION = "maxRecordsPerPartition"

FAIL_ON_DATA_LOSS = "failOnDataLoss"
INCLUDE_HEADERS = "includeHeaders"
GROUP_ID_PREFIX = "groupIdPrefix"
FETCH_OFFSET_RETRIES = "fetchOffset.numRetries"
FETCH_OFFSET_RETRY_INTERVAL = "fetchOffset.retryIntervalMs"
POLL_TIMEOUT = "kafkaConsumer.pollTimeoutMs"

SOURCE_OPTIONS = (
    *STRATEGIES,
    STARTING_OFFSETS,
    STARTING_OFFSETS_BY_TIMESTAMP,
    STARTING_TIMESTAMP,
    STARTING_STRATEGY,
    *ENDINGS,
    *RATES,
    MIN_PARTITIONS,
    MAX_RECORDS_PER_PARTITION,
    FAIL_ON_DATA_LOSS,
    INCLUDE_HEADERS,
    GROUP_ID_PREFIX,
    FETCH_OFFSET_RETRIES,
    FETCH_OFFSET_RETRY_INTERVAL,
    POLL_TIMEOUT,
)

TOPIC = "topic"
STAGING_DIR = "stagingDir"
DELIVERY = "delivery"
COMPRESSION = "compression"
TXN_APP_ID = "txnAppId"
TXN_VERSION = "txnVersion"
TXN_OLDER = "txnOlder"
EARLY_TIMESTAMPS = "earlyTimestamps"
CHECKPOINT_LOCATION = "checkpointLocation"
QUERY_NAME = "queryName"

SINK_OPTIONS = (
    TOPIC,
    STAGING_DIR,
    DELIVERY,
    TXN_APP_ID,
    TXN_VERSION,
    TXN_OLDER,
    EARLY_TIMESTAMPS,
    INCLUDE_HEADERS,
    CHECKPOINT_LOCATION,
    QUERY_NAME,
)

# --- settings of the client, with ``kafka.`` before them --------------------------------------------------------------

KAFKA = "kafka."
BOOTSTRAP_SERVERS = "bootstrap.servers"
GROUP_ID = "group.id"
ISOLATION_LEVEL = "isolation.level"
CLIENT_ID = "client.id"
API_TIMEOUT = "default.api.timeout.ms"
MAX_PARTITION_FETCH_BYTES = "max.partition.fetch.bytes"
FETCH_MAX_BYTES = "fetch.max.bytes"
FETCH_MAX_WAIT = "fetch.max.wait.ms"
FETCH_MIN_BYTES = "fetch.min.bytes"
CHECK_CRCS = "check.crcs"
EXCLUDE_INTERNAL_TOPICS = "exclude.internal.topics"
SECURITY_PROTOCOL = "security.protocol"

OBEYED_SETTINGS = (
    BOOTSTRAP_SERVERS,
    GROUP_ID,
    ISOLATION_LEVEL,
    CLIENT_ID,
    API_TIMEOUT,
    MAX_PARTITION_FETCH_BYTES,
    FETCH_MAX_BYTES,
    FETCH_MAX_WAIT,
    FETCH_MIN_BYTES,
    CHECK_CRCS,
    EXCLUDE_INTERNAL_TOPICS,
    SECURITY_PROTOCOL,
)

# Settings of Kafka's consumer that a program may carry along, and that mean nothing here: our client has no group
# membership, no Java classes, and its own idea of back-off and buffers.
IGNORED_SETTINGS = (
    "allow.auto.create.topics",
    "auto.commit.interval.ms",
    "auto.include.jmx.reporter",
    "client.dns.lookup",
    "client.rack",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "max.poll.records",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partition.assignment.strategy",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "send.buffer.bytes",
    "session.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
)

REFUSED_SETTINGS = {
    "auto.offset.reset": "startingOffsets says where a query begins, and its checkpoint where it goes on",
    "enable.auto.commit": "a query's offsets are in its checkpoint, and are told to kafka.group.id if there is one",
    "interceptor.classes": "there is no Java consumer to intercept",
    "key.deserializer": "keys are always binary: use CAST(key AS STRING) or from_json and the like",
    "value.deserializer": "values are always binary: use CAST(value AS STRING) or from_json and the like",
}

# --- settings of the sink's client ------------------------------------------------------------------------------------

COMPRESSION_TYPE = "compression.type"
COMPRESSION_LEVELS = {codec: f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd")}
TRANSACTION_TIMEOUT = "transaction.timeout.ms"
DELIVERY_TIMEOUT = "delivery.timeout.ms"
MAX_BLOCK = "max.block.ms"
ACKS = "acks"

SINK_OBEYED_SETTINGS = (
    BOOTSTRAP_SERVERS,
    CLIENT_ID,
    COMPRESSION_TYPE,
    *COMPRESSION_LEVELS.values(),
    TRANSACTION_TIMEOUT,
    DELIVERY_TIMEOUT,
    MAX_BLOCK,
    ACKS,
    SECURITY_PROTOCOL,
)

# Settings of Kafka's producer that a program may carry along: the sink has its own idea of batches and buffers.
SINK_IGNORED_SETTINGS = (
    "auto.include.jmx.reporter",
    "batch.size",
    "buffer.memory",
    "client.dns.lookup",
    "connections.max.idle.ms",
    "enable.idempotence",
    "enable.metrics.push",
    "linger.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "metadata.max.age.ms",
    "metadata.max.idle.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
)

_PARTITIONER = "rows go where Kafka's default partitioner puts them, or where the column partition says"
SINK_REFUSED_SETTINGS = {
    "interceptor.classes": "there is no Java producer to intercept",
    "key.serializer": "keys are string or binary columns: use CAST or to_json and the like",
    "partitioner.class": _PARTITIONER,
    "partitioner.ignore.keys": _PARTITIONER,
    "transactional.id": "a stream's is made of its query id, a batch write's of txnAppId",
    "transaction.two.phase.commit.enable": "the sink ends its transactions itself",
    "value.serializer": "values are string or binary columns: use CAST or to_json and the like",
}

# --- who knows which --------------------------------------------------------------------------------------------------


class Vocabulary(NamedTuple):
    options: tuple[str, ...]
    obeyed: tuple[str, ...]
    """Settings that mean something, without ``kafka.``."""
    ignored: tuple[str, ...]
    refused: Mapping[str, str]
    """Settings that can't be had, and why."""
    bare_settings: Mapping[str, str]
    """Settings that are understood without ``kafka.``, too: as they are called then, in lower case."""
    mistaken: Mapping[str, str]
    """What somebody who gives this name is told; in lower case."""


_PATH_READ = "headpond reads topics, not paths: give subscribe, subscribePattern or assign"
_PATH_WRITTEN = "headpond writes to topics, not to paths: give the option topic, or a column topic"

READING = Vocabulary(
    SOURCE_OPTIONS,
    OBEYED_SETTINGS,
    IGNORED_SETTINGS,
    REFUSED_SETTINGS,
    {ISOLATION_LEVEL: ISOLATION_LEVEL},
    {
        "path": _PATH_READ,
        "topic": "topic is an option of writing; to read, give subscribe, subscribePattern or assign",
        **{
            name.lower(): f"{name} is an option of writing, and this is a read"
            for name in (*SINK_OPTIONS, COMPRESSION)
            if name not in (TOPIC, INCLUDE_HEADERS)
        },
    },
)
WRITING = Vocabulary(
    SINK_OPTIONS,
    SINK_OBEYED_SETTINGS,
    SINK_IGNORED_SETTINGS,
    SINK_REFUSED_SETTINGS,
    {COMPRESSION: COMPRESSION_TYPE},
    {
        "path": _PATH_WRITTEN,
        **{
            name.lower(): f"{name} is an option of reading; where rows are written to is said by the option topic"
            for name in STRATEGIES
        },
        **{
            name.lower(): f"{name} is an option of reading, and this is a write"
            for name in SOURCE_OPTIONS
            if name not in (*STRATEGIES, INCLUDE_HEADERS)
        },
    },
)
READING_OR_WRITING = Vocabulary(
    (*SOURCE_OPTIONS, *(name for name in SINK_OPTIONS if name != INCLUDE_HEADERS)),
    (*OBEYED_SETTINGS, *SINK_OBEYED_SETTINGS),
    (*IGNORED_SETTINGS, *SINK_IGNORED_SETTINGS),
    {**SINK_REFUSED_SETTINGS, **REFUSED_SETTINGS},
    {**READING.bare_settings, **WRITING.bare_settings},
    {"path": _PATH_READ},
)
