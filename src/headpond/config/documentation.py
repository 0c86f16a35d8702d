"""One sentence on each setting, for DescribeConfigs and the settings page. Loaded only when somebody asks."""

from __future__ import annotations

from headpond.config.known.of_topics import BROKER_NAMES
from headpond.config.registry import listener_base

_TOPIC = {
    "cleanup.policy": "What happens to old records: delete removes segments past the retention, compact keeps the last "
    "record of each key, both may be given; an empty list keeps everything.",
    "compression.gzip.level": "The gzip level used when compression.type is gzip; -1 is gzip's own default.",
    "compression.lz4.level": "The lz4 level used when compression.type is lz4.",
    "compression.type": "The codec that batches are stored with: producer keeps what the producer chose, "
    "uncompressed none.",
    "compression.zstd.level": "The zstd level used when compression.type is zstd.",
    "delete.retention.ms": "How long compaction keeps the tombstones of deleted keys, in milliseconds.",
    "file.delete.delay.ms": "How long a deleted segment stays on disk under another name, in milliseconds.",
    "flush.messages": "Force a flush to disk after this many records; headpond.flush decides what an answer waits for.",
    "flush.ms": "Force a flush to disk when a record has waited this many milliseconds.",
    "follower.replication.throttled.replicas": "Replicas (partition:broker, or *) whose catching up is throttled on "
    "the follower.",
    "index.interval.bytes": "How many bytes of log lie between two entries of the offset index.",
    "internal.segment.bytes": "The size of a segment, free of the lower bound of segment.bytes; for tests.",
    "leader.replication.throttled.replicas": "Replicas (partition:broker, or *) whose catching up is throttled on "
    "the leader.",
    "local.retention.bytes": "Tiered storage: bytes kept locally; -2 follows retention.bytes.",
    "local.retention.ms": "Tiered storage: time kept locally; -2 follows retention.ms.",
    "max.compaction.lag.ms": "The longest time that a record may stay uncompacted, in milliseconds.",
    "max.message.bytes": "The largest record batch that is accepted, as it comes, compressed.",
    "message.timestamp.after.max.ms": "How far ahead of the broker's clock a record's timestamp may be, in "
    "milliseconds.",
    "message.timestamp.before.max.ms": "How far behind the broker's clock a record's timestamp may be, in "
    "milliseconds.",
    "message.timestamp.type": "Whose clock stamps a record: CreateTime the producer's, LogAppendTime the broker's.",
    "min.cleanable.dirty.ratio": "The part of a log that must be uncompacted before compaction looks at it.",
    "min.compaction.lag.ms": "The shortest time that a record stays uncompacted, in milliseconds.",
    "min.insync.replicas": "With acks=all, a produce needs this many in-sync replicas, or as many as the topic has "
    "if fewer.",
    "headpond.validate.records": "Look at every record of every produced batch, as Kafka does, and not only where a "
    "promise "
    "depends on it: refuses records that are garbage inside a batch with a right checksum.",
    "preallocate": "Reserve a new segment's whole size on disk: accepted, and segments grow as they are written.",
    "remote.log.copy.disable": "Tiered storage: stop copying segments away.",
    "remote.log.delete.on.disable": "Tiered storage: delete the copies when it is turned off.",
    "remote.storage.enable": "Tiered storage; not available, so only false is accepted.",
    "retention.bytes": "Delete the oldest segments when a partition is larger than this; -1 means no limit.",
    "retention.ms": "Delete segments whose records are all older than this many milliseconds; -1 means never.",
    "segment.bytes": "The size at which a new segment is begun.",
    "segment.index.bytes": "The largest size of a segment's index; a full one begins a new segment.",
    "segment.jitter.ms": "The most by which a segment's age limit is shortened by chance, so that not all roll at "
    "once.",
    "segment.ms": "The age at which a new segment is begun even if this one is not full, in milliseconds.",
    "unclean.leader.election.enable": "Whether a replica that is not in sync may become leader, which loses records.",
}

_BROKER = {
    "add.partitions.to.txn.retry.backoff.max.ms": "How long a transaction's first append waits, at most, for the end "
    "of its producer's transaction before, in milliseconds.",
    "add.partitions.to.txn.retry.backoff.ms": "How often it looks meanwhile whether that has ended, in milliseconds.",
    "advertised.listeners": "The addresses that clients are told to connect to, by listener name; those of "
    "listeners if unset.",
    "auto.create.topics.enable": "Create a topic when a client asks for its metadata and it does not exist.",
    "broker.id": "The older name of node.id.",
    "broker.rack": "Where this broker stands; told to clients, and used to spread replicas.",
    "connections.max.idle.ms": "Close a connection that has been silent this long, in milliseconds; negative means "
    "never.",
    "controller.listener.names": "Listeners of this list are Kafka's controller's and are not opened here.",
    "default.replication.factor": "The replication factor of topics that are created without one.",
    "delete.topic.enable": "Whether topics can be deleted.",
    "fetch.max.bytes": "The most that one fetch response holds, whatever the client asks for.",
    "group.consumer.assignment.interval.ms": "A consumer group (KIP-848) gets a new assignment at most this often, in "
    "milliseconds.",
    "group.consumer.assignors": "The assignors of consumer groups (KIP-848) that members may ask for; the first is the "
    "default.",
    "group.consumer.heartbeat.interval.ms": "How often members of consumer groups (KIP-848) are told to send a "
    "heartbeat, in milliseconds.",
    "group.consumer.max.assignment.interval.ms": "The most that a group's own consumer.assignment.interval.ms may be.",
    "group.consumer.max.heartbeat.interval.ms": "The most that a group's own consumer.heartbeat.interval.ms may be.",
    "group.consumer.max.session.timeout.ms": "The most that a group's own consumer.session.timeout.ms may be.",
    "group.consumer.max.size": "The most members of one consumer group (KIP-848).",
    "group.consumer.migration.policy": "Whether classic groups become consumer groups (upgrade) and consumer groups "
    "classic ones (downgrade) while they have members.",
    "group.consumer.min.assignment.interval.ms": "The least that a group's own consumer.assignment.interval.ms may be.",
    "group.consumer.min.heartbeat.interval.ms": "The least that a group's own consumer.heartbeat.interval.ms may be.",
    "group.consumer.min.session.timeout.ms": "The least that a group's own consumer.session.timeout.ms may be.",
    "group.consumer.regex.refresh.interval.ms": "How often subscriptions by pattern are looked up again, in "
    "milliseconds.",
    "group.consumer.session.timeout.ms": "A member of a consumer group (KIP-848) that has been silent this long is put "
    "out, in milliseconds.",
    "group.coordinator.rebalance.protocols": "The protocols of groups that are served: without consumer, those of "
    "KIP-848 are refused. Share and streams groups never are, and classic ones always.",
    "group.initial.rebalance.delay.ms": "How long an empty classic group waits for more members after the first, in "
    "milliseconds.",
    "group.max.session.timeout.ms": "The longest session time-out that members of classic groups may ask for.",
    "group.max.size": "The most members of one classic group.",
    "group.min.session.timeout.ms": "The shortest session time-out that members of classic groups may ask for.",
    "listener.security.protocol.map": "The security protocol of each listener name; only PLAINTEXT is served.",
    "listeners": "Where to listen: NAME://HOST:PORT, separated by commas; port 0 picks a free one.",
    "log.cleaner.backoff.ms": "How long compaction waits before it looks again when no log needs it, in milliseconds.",
    "log.cleaner.dedupe.buffer.size": "Memory for the keys of the logs that are being compacted, over all threads: "
    "about 180 bytes and its own length for each key. A log with more keys is compacted in several rounds.",
    "log.cleaner.enable": "Whether logs are compacted.",
    "log.cleaner.io.buffer.load.factor": "How much of log.cleaner.dedupe.buffer.size is used.",
    "log.cleaner.io.buffer.size": "Compaction reads this many bytes at a time, over all threads.",
    "log.cleaner.io.max.bytes.per.second": "Compaction reads and writes no more than this many bytes per second.",
    "log.cleaner.threads": "Logs that are compacted at a time, each by a process of its own.",
    "log.dir": "The data folder, when log.dirs is not set.",
    "log.dirs": "The data folder; one only.",
    "log.flush.offset.checkpoint.interval.ms": "How often Kafka writes its recovery points: accepted without effect. "
    "They are written within half a second of a change.",
    "log.flush.scheduler.interval.ms": "The default of flush.ms where log.flush.interval.ms is not set.",
    "log.flush.start.offset.checkpoint.interval.ms": "How often Kafka writes the log start offsets: accepted without "
    "effect. They are written when they change.",
    "log.initial.task.delay.ms": "How long after the start retention and checkpoints begin, in milliseconds.",
    "log.retention.check.interval.ms": "How often retention looks for segments to delete, in milliseconds.",
    "log.retention.hours": "The default of retention.ms in hours; log.retention.minutes and log.retention.ms are "
    "stronger.",
    "log.retention.minutes": "The default of retention.ms in minutes; log.retention.ms is stronger.",
    "log.roll.hours": "The default of segment.ms in hours; log.roll.ms is stronger.",
    "log.roll.jitter.hours": "The default of segment.jitter.ms in hours; log.roll.jitter.ms is stronger.",
    "max.connections": "The most connections at a time.",
    "max.connections.per.ip": "The most connections at a time from one address.",
    "max.connections.per.ip.overrides": "Other limits for some addresses: HOST:COUNT, separated by commas.",
    "max.incremental.fetch.session.cache.slots": "The most fetch sessions that are kept; 0 turns them off.",
    "max.request.partition.size.limit": "The most partitions in one DescribeTopicPartitions response.",
    "node.id": "This broker's number, different from every other's in the cluster.",
    "num.partitions": "The number of partitions of topics that are created without one.",
    "num.recovery.threads.per.data.dir": "Threads that check logs at the start and close them at the end.",
    "offset.metadata.max.bytes": "The most characters of metadata that go with a committed offset.",
    "offsets.commit.timeout.ms": "How long an offset commit, or anything else that changes a group, may take to become "
    "durable, in milliseconds; after it the answer is COORDINATOR_NOT_AVAILABLE, and clients try again.",
    "offsets.retention.check.interval.ms": "How often old offsets are looked for, in milliseconds.",
    "offsets.retention.minutes": "Offsets are forgotten this long after their group became empty, or, of groups "
    "without members and of topics that nobody subscribes to, after they were committed.",
    "offsets.topic.num.partitions": "The number of partitions of __consumer_offsets, when it is made.",
    "offsets.topic.replication.factor": "The replication factor of __consumer_offsets, when it is made; as many as "
    "there are brokers, if there are fewer.",
    "offsets.topic.segment.bytes": "The size of a segment of __consumer_offsets, when it is made.",
    "headpond.connection.inflight.max": "Requests of one connection that wait for their answer; beyond it reading "
    "pauses.",
    "headpond.flush": "When a record counts as stored: ack, when it is on the disk (fsync); interval and os, when "
    "the system "
    "has it, flushed within a second (or flush.ms) or when the system likes.",
    "headpond.log.format": "How the broker's own log lines look: text for people, json (an object per line) for "
    "machines.",
    "headpond.log.level": "What is logged at least: DEBUG, INFO, WARNING or ERROR.",
    "headpond.metrics.listen": "Where Prometheus metrics (/metrics) and health checks (/healthz, /readyz) are served, "
    "as HOST:PORT; port 0 picks one. Not set: nowhere.",
    "headpond.metrics.partitions.max": "Partitions that have metrics of their own; the others are counted together as "
    "topic other.",
    "headpond.request.memory.bytes": "Bytes of requests that are partly received, over all connections. Beyond it, "
    "requests wait their turn, and clients that take more than 30 s to send one are closed. queued.max.request.bytes "
    "takes precedence.",
    "headpond.response.memory.bytes": "Bytes of responses that can't be sent yet, over all connections. Above half of "
    "it, fetches are cut to one batch. Beyond it, requests with large answers wait, and clients that do not read "
    "theirs are closed.",
    "headpond.validate.records": "The default of the topic setting headpond.validate.records.",
    "producer.id.expiration.check.interval.ms": "How often expired producer ids are looked for, in milliseconds.",
    "producer.id.expiration.ms": "Forget the sequence numbers of a producer that has been silent this long, in "
    "milliseconds.",
    "queued.max.request.bytes": "Bytes of requests that are partly received; -1 leaves it to "
    "headpond.request.memory.bytes.",
    "replica.high.watermark.checkpoint.interval.ms": "How often Kafka writes the high watermarks: accepted without "
    "effect. They are written every few seconds.",
    "socket.listen.backlog.size": "Connections that the system holds until they are accepted.",
    "socket.receive.buffer.bytes": "The receive buffer of a socket: accepted without effect. The system fits it to "
    "the connection.",
    "socket.request.max.bytes": "The largest request that is accepted.",
    "socket.send.buffer.bytes": "The send buffer of a socket: accepted without effect. The system fits it to the "
    "connection.",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "How often transactions that are open for too "
    "long are looked for, in milliseconds.",
    "transaction.max.timeout.ms": "The longest time-out that a transactional producer may ask for, in milliseconds.",
    "transaction.partition.verification.enable": "Whether a transaction's first append to a partition is checked "
    "against its coordinator.",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "How often transactional ids that nobody uses are "
    "looked for, in milliseconds.",
    "transaction.state.log.min.isr": "The min.insync.replicas of __transaction_state, when it is made.",
    "transaction.state.log.num.partitions": "The number of partitions of __transaction_state, when it is made.",
    "transaction.state.log.replication.factor": "The replication factor of __transaction_state, when it is made; as "
    "many as there are brokers, if there are fewer.",
    "transaction.state.log.segment.bytes": "The size of a segment of __transaction_state, when it is made.",
    "transactional.id.expiration.ms": "A transactional id that was not used for this long is forgotten, in "
    "milliseconds.",
}

# Settings without effect are told by what they are about; the longest beginning counts.
_AREAS = {
    "": "a part of Kafka that is not here",
    "alter.": "replicas moving between folders, or policies for changes",
    "authorizer.": "authorisation",
    "auto.leader.": "moving leaders back to their preferred brokers",
    "background.": "Kafka's threads",
    "broker.": "the broker's session with Kafka's controller",
    "client.quota.": "quotas",
    "config.providers": "values from outside the settings file",
    "connection.failed.authentication.": "authentication",
    "connections.max.reauth.": "authentication",
    "controlled.": "handing leaders over before stopping",
    "controller.": "Kafka's controller quorum",
    "cordoned.": "folders that get no new replicas",
    "create.topic.policy.": "a policy for new topics",
    "delegation.token.": "delegation tokens",
    "delete.records.purgatory.": "Kafka's waiting requests",
    "fetch.purgatory.": "Kafka's waiting requests",
    "follower.": "replication",
    "group.": "consumer groups",
    "group.share.": "share groups",
    "group.streams.": "streams groups",
    "inter.broker.": "traffic between brokers",
    "internal.metadata.": "Kafka's metadata log",
    "kafka.metrics.": "Kafka's metrics",
    "leader.": "leaders and their balance",
    "log.local.": "tiered storage",
    "metadata.": "Kafka's metadata log",
    "metric": "Kafka's metrics",
    "num.": "Kafka's threads",
    "offset": "consumer offsets",
    "principal.": "authentication",
    "process.roles": "what a Kafka process is",
    "producer.purgatory.": "Kafka's waiting requests",
    "queued.max.requests": "Kafka's request queue",
    "quota.": "quotas",
    "remote.": "tiered storage",
    "replica.": "replication",
    "replication.quota.": "quotas of replication",
    "request.timeout.ms": "requests to Kafka's controller",
    "sasl.": "SASL",
    "sasl.kerberos.": "Kerberos",
    "sasl.oauthbearer.": "OAuth",
    "security.": "security between brokers",
    "share.": "share groups",
    "socket.connection.setup.": "traffic between brokers",
    "ssl.": "TLS",
    "telemetry.": "client metrics",
    "transaction": "transactions",
    "unstable.": "unreleased parts of the protocol",
}

_GROUP = {
    "assignment.interval.ms": "the least time between two assignments of the group",
    "auto.offset.reset": "where the group starts to read: earliest, latest or by_duration:P...",
    "delivery.count.limit": "how often a record is delivered before it is given up",
    "heartbeat.interval.ms": "how often members report",
    "initial.rebalance.delay.ms": "how long a new group waits for more members",
    "isolation.level": "whether records of open and aborted transactions are delivered",
    "num.standby.replicas": "standby copies of each task",
    "partition.max.record.locks": "records of a partition that may be out for delivery",
    "record.lock.duration.ms": "how long a record is out for delivery",
    "renew.acknowledge.enable": "whether members may prolong a delivery",
    "session.timeout.ms": "how long a member may be silent before it is removed",
}

_CLIENT_METRICS = {
    "interval.ms": "How often clients push their metrics, in milliseconds.",
    "match": "Which clients: name=pattern, separated by commas; none means all.",
    "metrics": "Which metrics, by the beginning of their names; none means none.",
}


def documentation(kind: str, name: str) -> str | None:
    """``kind``: topic, broker, group or client-metrics. None: nobody knows such a setting."""
    if kind == "topic":
        return _TOPIC.get(name)
    if kind == "broker":
        return _broker(listener_base(name))
    if kind == "group":
        family, _, what = name.partition(".")
        return f"For {family} groups: {_GROUP[what]}." if what in _GROUP else None
    return _CLIENT_METRICS.get(name)


def _broker(name: str) -> str | None:
    from headpond.config.registry import broker_setting

    if name in _BROKER:
        return _BROKER[name]
    setting = broker_setting(name)
    if setting is None:
        return None
    topic_name = next((topic for topic, names in BROKER_NAMES.items() if names[0].name == name), None)
    if topic_name is not None:
        return f"The default of the topic setting {topic_name}. {_TOPIC[topic_name]}"
    area = max((start for start in _AREAS if name.startswith(start)), key=len)
    return f"Of Kafka's, about {_AREAS[area]}: accepted without effect."
