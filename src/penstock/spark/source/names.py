"""The names of the options, as in Spark's Kafka connector. Spark compares them without regard to case; so do we."""

from __future__ import annotations

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

SECURITY_PREFIXES = ("ssl.", "sasl.", "security.")
SECRET_WORDS = ("password", "secret", "jaas", "keystore.key", "token", "credential")


def is_secret(name: str) -> bool:
    return any(word in name.lower() for word in SECRET_WORDS)
