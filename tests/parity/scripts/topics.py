"""CreateTopics, DeleteTopics and CreatePartitions: what is made, what is only checked, what is refused."""

from __future__ import annotations

from typing import Any

from parity.asking import creatable, named, settings
from parity.notation import Script, ask, topic

STRANGER = bytes(range(16))
CONFIGS = ["topics.configs"]


def create(
    label: str, *topics: dict[str, Any], timeout_ms: int = 30_000, unordered: list[str] | None = None, **options: Any
) -> Any:
    return ask("CreateTopics", label, topics=list(topics), timeout_ms=timeout_ms, unordered=unordered or [], **options)


def assigned(name: str, *replicas: tuple[int, list[int]], partitions: int = -1, factor: int = -1) -> dict[str, Any]:
    rows = [{"partition_index": index, "broker_ids": brokers} for index, brokers in replicas]
    return creatable(name, partitions, factor, assignments=rows)


def grow(label: str, *topics: dict[str, Any], timeout_ms: int = 30_000, **options: Any) -> Any:
    return ask("CreatePartitions", label, topics=list(topics), timeout_ms=timeout_ms, **options)


def to(name: str, count: int, assignments: list[list[int]] | None = None) -> dict[str, Any]:
    rows = None if assignments is None else [{"broker_ids": each} for each in assignments]
    return {"name": name, "count": count, "assignments": rows}


NAMES = ["", ".", "..", "no spaces", "é", "a/b", "x" * 250, "__cluster_metadata", "a\0b"]

SCRIPTS = [
    Script(
        "topics are made",
        each="CreateTopics",
        steps=[
            topic("seed"),
            create("one partition", creatable("one-${seed}"), capture={"one.id": "topics[0].topic_id"}),
            create(
                "with settings",
                creatable(
                    "set-${seed}",
                    2,
                    configs=settings(
                        {"retention.ms": "1000", "cleanup.policy": "compact,delete", "max.message.bytes": "2000"}
                    ),
                ),
                capture={"set.id": "topics[0].topic_id"},
            ),
            create(
                "default partitions and replication",
                creatable("default-${seed}", -1, -1),
                capture={"default.id": "topics[0].topic_id"},
            ),
            create(
                "by assignment",
                assigned("assigned-${seed}", (1, [1]), (0, [1])),
                capture={"assigned.id": "topics[0].topic_id"},
            ),
            create("only checked", creatable("checked-${seed}"), validate_only=True),
            ask(
                "Metadata",
                "all of them",
                topics=named("one-${seed}", "set-${seed}", "default-${seed}", "assigned-${seed}"),
                allow_auto_topic_creation=False,
                unordered=["topics"],
                until=lambda answer: all(
                    t.error_code == 0 and all(p.leader_id >= 0 for p in t.partitions) for t in answer.topics
                ),
            ),
            ask("Metadata", "what was only checked", topics=named("checked-${seed}"), allow_auto_topic_creation=False),
            create("the same again", creatable("one-${seed}")),
            create("the same again, only checked", creatable("one-${seed}"), validate_only=True),
        ],
    ),
    Script("names", each="CreateTopics", steps=[create(f"the name {name[:40]!r}", creatable(name)) for name in NAMES]),
    Script(
        "names that clash",
        each="CreateTopics",
        steps=[
            topic("seed"),
            create("a.b", creatable("a.b${seed}"), capture={"ab.id": "topics[0].topic_id"}),
            ask(
                "Metadata",
                "a.b is there",
                topics=named("a.b${seed}"),
                allow_auto_topic_creation=False,
                until=lambda answer: answer.topics[0].error_code == 0,
            ),
            create("a_b", creatable("a_b${seed}")),
            create("a_b, only checked", creatable("a_b${seed}"), validate_only=True),
        ],
    ),
    Script(
        "partitions and replication",
        each="CreateTopics",
        steps=[
            *[create(f"{partitions} partitions", creatable("never", partitions)) for partitions in (0, -2, -1_000)],
            *[
                create(f"replication factor {factor}", creatable("never", 1, factor))
                for factor in (0, -2, 2, 100, 32_767)
            ],
            create("neither", creatable("never", 0, 0)),
            create("too many partitions", creatable("never", 10_001)),
            create(
                "too many partitions in all",
                creatable("never", 6_000),
                creatable("nor-this", 6_000),
                unordered=["topics"],
            ),
        ],
    ),
    Script(
        "assignments",
        each="CreateTopics",
        steps=[
            create("a broker that is not there", assigned("never", (0, [7]))),
            create("a broker twice", assigned("never", (0, [1, 1]))),
            create("no broker", assigned("never", (0, []))),
            create("a gap", assigned("never", (0, [1]), (2, [1]))),
            create("not from zero", assigned("never", (1, [1]))),
            create("a negative partition", assigned("never", (-1, [1]))),
            create("a partition twice", assigned("never", (0, [1]), (0, [1]))),
            create("with a number of partitions", assigned("never", (0, [1]), partitions=1)),
            create("with a replication factor", assigned("never", (0, [1]), factor=1)),
            create("different numbers of replicas", assigned("never", (0, [1]), (1, [1, 2]))),
            create("a negative broker", assigned("never", (0, [-1]))),
        ],
    ),
    Script(
        "settings that can't be",
        each="CreateTopics",
        steps=[
            create(f"{name}={value}", creatable("never", configs=settings({name: value})), validate_only=True)
            for name, value in [
                ("no.such.setting", "1"),
                ("", "1"),
                ("retention.ms", None),
                ("retention.ms", "abc"),
                ("retention.ms", ""),
                ("retention.ms", "-2"),
                ("retention.ms", " 5 "),
                ("cleanup.policy", "shred"),
                ("cleanup.policy", ""),
                ("cleanup.policy", "delete,delete"),
                ("compression.type", "zip"),
                ("segment.bytes", "1"),
                ("segment.bytes", "99999999999"),
                ("segment.ms", "0"),
                ("min.insync.replicas", "0"),
                ("min.cleanable.dirty.ratio", "2"),
                ("message.timestamp.type", "Never"),
                ("preallocate", "maybe"),
                ("max.message.bytes", "-1"),
                ("max.compaction.lag.ms", "0"),
                ("file.delete.delay.ms", "-1"),
                ("leader.replication.throttled.replicas", "x"),
                ("leader.replication.throttled.replicas", "*"),
                ("unclean.leader.election.enable", "TRUE"),
                ("message.downconversion.enable", "true"),
                ("message.format.version", "2.0"),
                ("remote.storage.enable", "true"),
                ("local.retention.ms", "99999999999"),
                ("flush.messages", "0"),
                ("min.compaction.lag.ms", "99999999999999999999"),
                ("index.interval.bytes", "-1"),
                ("compression.gzip.level", "0"),
                ("compression.zstd.level", "99"),
                ("compression.lz4.level", "18"),
                ("retention.bytes", "-5"),
                ("internal.segment.bytes", "1000"),
                ("errors.deadletterqueue.topic.name", "x"),
            ]
        ],
    ),
    Script(
        "settings that go together or not",
        each="CreateTopics",
        steps=[
            create(
                "a setting twice",
                creatable(
                    "never", configs=[{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}]
                ),
                validate_only=True,
                unordered=[],
            ),
            create("two nulls", creatable("never", configs=settings({"retention.ms": None, "segment.ms": None}))),
            create(
                "lags the wrong way round",
                creatable("never", configs=settings({"min.compaction.lag.ms": "20", "max.compaction.lag.ms": "10"})),
            ),
            create(
                "local retention without remote storage",
                creatable("never", configs=settings({"local.retention.ms": "5"})),
                validate_only=True,
            ),
        ],
    ),
    Script(
        "several at once",
        each="CreateTopics",
        steps=[
            topic("seed"),
            create("nothing"),
            create(
                "one name twice",
                creatable("twice-${seed}"),
                creatable("once-${seed}"),
                creatable("twice-${seed}"),
                capture={},
                validate_only=True,
                unordered=["topics"],
            ),
            create(
                "good and bad",
                creatable("good-${seed}"),
                creatable("no spaces"),
                creatable("${seed}"),
                validate_only=True,
                unordered=["topics"],
            ),
            create("no time", creatable("late-${seed}"), timeout_ms=0),
            create("less than no time", creatable("late-${seed}"), timeout_ms=-1),
        ],
    ),
    Script(
        "deleted by name",
        each="DeleteTopics",
        steps=[
            topic("a"),
            topic("b"),
            ask("DeleteTopics", "what is not there", topic_names=["nobody"], topics=named("nobody"), timeout_ms=5_000),
            ask(
                "DeleteTopics",
                "an impossible name",
                topic_names=["no spaces"],
                topics=named("no spaces"),
                timeout_ms=5_000,
            ),
            ask("DeleteTopics", "an empty name", topic_names=[""], topics=named(""), timeout_ms=5_000),
            ask("DeleteTopics", "no time", topic_names=["${a}"], topics=named("${a}"), timeout_ms=0),
            ask(
                "DeleteTopics",
                "one name twice",
                topic_names=["${a}", "${a}", "${b}"],
                topics=named("${a}", "${a}", "${b}"),
                timeout_ms=5_000,
                unordered=["responses"],
            ),
            ask("DeleteTopics", "nothing", topic_names=[], topics=[], timeout_ms=5_000),
            ask("DeleteTopics", "one that is there", topic_names=["${a}"], topics=named("${a}"), timeout_ms=5_000),
            ask("DeleteTopics", "again", topic_names=["${a}"], topics=named("${a}"), timeout_ms=5_000),
            ask(
                "Metadata",
                "gone",
                topics=named("${a}", "${b}"),
                allow_auto_topic_creation=False,
                until=lambda answer: all(t.error_code != 0 for t in answer.topics),
                unordered=["topics"],
            ),
        ],
    ),
    Script(
        "deleted by id",
        [
            topic("a"),
            topic("b"),
            topic("c"),
            *[
                ask("DeleteTopics", label, topics=topics, timeout_ms=5_000, unordered=["responses"])
                for label, topics in [
                    ("an id that is not there", [{"topic_id": STRANGER}]),
                    ("neither name nor id", [{}]),
                    ("both name and id", [{"name": "${a}", "topic_id": "${a.id}"}]),
                    ("one id twice", [{"topic_id": "${a.id}"}, {"topic_id": "${a.id}"}]),
                    ("the same by name and by id", [{"topic_id": "${b.id}"}, {"name": "${b}"}]),
                    ("two that are there", [{"topic_id": "${a.id}"}, {"name": "${c}"}]),
                    ("again", [{"topic_id": "${a.id}"}]),
                ]
            ],
        ],
    ),
    Script(
        "partitions added",
        each="CreatePartitions",
        steps=[
            topic(),
            grow("to one, as it is", to("${t}", 1)),
            *[grow(f"to {count}", to("${t}", count)) for count in (0, -1)],
            grow("only checked", to("${t}", 3), validate_only=True),
            grow("to two", to("${t}", 2)),
            grow("to three, by assignment", to("${t}", 3, [[1]])),
            *[
                grow(f"to five, assigned {assignment}", to("${t}", 5, assignment))
                for assignment in ([], [[1]], [[1], [1], [1]], [[1], [9]], [[1], []], [[1], [1, 1]], [[1, 2], [1]])
            ],
            grow("another topic", to("nobody", 2)),
            grow("an impossible name", to("no spaces", 2)),
            grow("one twice", to("${t}", 5), to("${t}", 6), to("nobody", 1), unordered=["results"]),
            grow("nothing"),
            grow("no time", to("${t}", 6), timeout_ms=0),
            grow("far too many, only checked", to("${t}", 20_000), validate_only=True),
            ask(
                "Metadata",
                "afterwards",
                topics=named("${t}"),
                until=lambda answer: (
                    len(answer.topics[0].partitions) == 3 and all(p.leader_id >= 0 for p in answer.topics[0].partitions)
                ),
            ),
        ],
    ),
]
