"""Metadata, DescribeTopicPartitions, DescribeCluster, DescribeLogDirs, FindCoordinator: who is there and has what."""

from __future__ import annotations

from typing import Any

from parity.asking import creatable, named, produce
from parity.notation import ALL, Script, ask, batch, topic

STRANGER = bytes(range(16))


def made(name: str, *, partitions: int = 1, versions: list[int] | None = None) -> list[Any]:
    """A topic by its own name, and Metadata until its partitions lead."""
    return [
        ask(
            "CreateTopics",
            f"create {name}",
            topics=[creatable(name, partitions)],
            capture={name + ".id": "topics[0].topic_id"},
        ),
        ask(
            "Metadata",
            f"{name} leads",
            topics=named(name),
            until=lambda answer: (
                all(p.leader_id >= 0 for p in answer.topics[0].partitions) and answer.topics[0].partitions
            ),
        ),
    ]


SCRIPTS = [
    Script(
        "an empty cluster",
        fresh=True,
        steps=[
            ask("Metadata", "all topics", versions=range(1, 14), topics=None),
            ask("Metadata", "an empty list: all in v0, none afterwards", versions=ALL, topics=[]),
            ask("DescribeTopicPartitions", "all topics", topics=[]),
            ask("DescribeCluster", versions=ALL),
            ask("DescribeLogDirs", "all topics", versions=ALL, topics=None),
            ask("ListConfigResources", versions=ALL, unordered=["config_resources"]),
        ],
    ),
    Script(
        "two topics, listed",
        fresh=True,
        steps=[
            *made("zebra", partitions=3),
            *made("ant"),
            ask("Metadata", "all topics", versions=range(1, 14), topics=None, unordered=["topics"]),
            ask("Metadata", "an empty list: all in v0, none afterwards", versions=ALL, topics=[], unordered=["topics"]),
            ask("Metadata", "both, in this order", versions=ALL, topics=named("zebra", "ant"), unordered=["topics"]),
            ask("DescribeTopicPartitions", "all topics", topics=[]),
            ask("DescribeTopicPartitions", "two partitions at a time", topics=[], response_partition_limit=2),
            ask(
                "DescribeTopicPartitions",
                "from a cursor on",
                topics=[],
                cursor={"topic_name": "zebra", "partition_index": 1},
            ),
            ask(
                "DescribeTopicPartitions",
                "from a cursor on that points nowhere",
                topics=[],
                cursor={"topic_name": "bee", "partition_index": 0},
            ),
            ask(
                "DescribeTopicPartitions",
                "a cursor at a partition that is not there",
                topics=[],
                cursor={"topic_name": "zebra", "partition_index": 9},
            ),
            ask(
                "DescribeTopicPartitions",
                "a cursor below zero",
                topics=[],
                cursor={"topic_name": "zebra", "partition_index": -1},
            ),
            ask(
                "DescribeLogDirs",
                "all topics",
                versions=ALL,
                topics=None,
                unordered=["results.topics", "results.topics.partitions"],
            ),
            ask("ListConfigResources", versions=ALL, unordered=["config_resources"]),
        ],
    ),
    Script(
        "topics that are and are not",
        [
            topic(partitions=2),
            ask("Metadata", "known", versions=ALL, topics=named("${t}")),
            ask(
                "Metadata",
                "unknown, not to be made",
                versions=range(4, 14),
                topics=named("nobody"),
                allow_auto_topic_creation=False,
            ),
            ask(
                "Metadata",
                "known twice and unknown",
                versions=range(4, 14),
                topics=named("${t}", "nobody", "${t}"),
                allow_auto_topic_creation=False,
                unordered=["topics"],
            ),
            *[
                ask(
                    "Metadata",
                    f"the name {name[:40]!r}",
                    versions=range(4, 14),
                    topics=named(name),
                    allow_auto_topic_creation=False,
                )
                for name in ("no spaces", "", ".", "..", "x" * 249, "x" * 250, "é")
            ],
        ],
    ),
    Script(
        "by id",
        [
            topic(partitions=2),
            ask("Metadata", "known", versions=[10, 11, 12, 13], topics=[{"topic_id": "${t.id}", "name": None}]),
            ask("Metadata", "unknown", versions=[10, 11, 12, 13], topics=[{"topic_id": STRANGER, "name": None}]),
            ask(
                "Metadata",
                "both",
                versions=[12, 13],
                topics=[{"topic_id": STRANGER, "name": None}, {"topic_id": "${t.id}", "name": None}],
                unordered=["topics"],
            ),
            ask(
                "Metadata",
                "no id and no name",
                versions=[10, 11, 12, 13],
                topics=[{"topic_id": bytes(16), "name": None}],
            ),
            ask(
                "Metadata",
                "the id and the name",
                versions=[10, 11, 12, 13],
                topics=[{"topic_id": "${t.id}", "name": "${t}"}],
            ),
            ask(
                "Metadata",
                "one by id, one by name",
                versions=[12, 13],
                topics=[{"topic_id": "${t.id}", "name": None}, {"name": "${t}"}],
            ),
        ],
    ),
    Script(
        "made by asking for them",
        each="Metadata",
        steps=[
            topic("seed"),
            ask("Metadata", "not there yet", topics=named("auto-${seed}")),
            ask(
                "Metadata",
                "made meanwhile",
                topics=named("auto-${seed}"),
                until=lambda answer: answer.topics[0].error_code == 0,
            ),
            ask(
                "Metadata",
                "its id",
                versions=[13],
                topics=named("auto-${seed}"),
                capture={"auto.id": "topics[0].topic_id"},
            ),
            ask("Metadata", "a name that no topic can have", topics=named("no spaces")),
            ask(
                "Metadata",
                "a name with a dot",
                topics=named("auto.${seed}"),
                until=lambda answer: answer.topics[0].error_code == 0,
            ),
            ask("Metadata", "a name that clashes with it", topics=named("auto_${seed}")),
            ask("Metadata", "__cluster_metadata", topics=named("__cluster_metadata")),
        ],
    ),
    Script(
        "authorised operations",
        [
            topic(),
            ask(
                "Metadata",
                "of the topic",
                versions=range(8, 14),
                topics=named("${t}"),
                include_topic_authorized_operations=True,
            ),
            ask(
                "Metadata",
                "of the cluster",
                versions=range(8, 11),
                topics=[],
                include_cluster_authorized_operations=True,
            ),
            ask(
                "Metadata",
                "of a topic that is not there",
                versions=range(8, 14),
                topics=named("nobody"),
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=True,
            ),
            ask("DescribeCluster", "of the cluster", versions=ALL, include_cluster_authorized_operations=True),
        ],
    ),
    Script(
        "the cluster described",
        [
            *[
                ask("DescribeCluster", f"endpoint type {kind}", versions=[1, 2], endpoint_type=kind)
                for kind in (1, 2, 0, 3, -1)
            ],
            ask("DescribeCluster", "fenced brokers too", versions=[2], include_fenced_brokers=True),
        ],
    ),
    Script(
        "partitions of topics described",
        [
            topic("b", partitions=3),
            topic("a"),
            ask("DescribeTopicPartitions", "two topics", topics=named("${b}", "${a}")),
            ask("DescribeTopicPartitions", "one twice", topics=named("${b}", "${b}")),
            *[
                ask("DescribeTopicPartitions", f"the name {name!r}", topics=named(name))
                for name in ("nobody", "no spaces", "")
            ],
            ask("DescribeTopicPartitions", "known and unknown", topics=named("${a}", "nobody", "${b}")),
            *[
                ask(
                    "DescribeTopicPartitions",
                    f"a limit of {limit}",
                    topics=named("${a}", "${b}"),
                    response_partition_limit=limit,
                )
                for limit in (0, 1, 2, 3, 4, 5_000, -1)
            ],
            *[
                ask(
                    "DescribeTopicPartitions",
                    f"from a cursor at {at} on",
                    topics=named("${a}", "${b}"),
                    cursor={"topic_name": "${b}", "partition_index": at},
                )
                for at in (0, 2, 3, -1)
            ],
        ],
    ),
    Script(
        "log folders",
        [
            topic(partitions=2),
            ask(
                "DescribeLogDirs",
                "an empty topic",
                versions=ALL,
                topics=[{"topic": "${t}", "partitions": [0, 1]}],
                unordered=["results.topics.partitions"],
            ),
            produce(batch("a", "b"), "a batch"),
            ask("DescribeLogDirs", "with a batch", versions=ALL, topics=[{"topic": "${t}", "partitions": [0]}]),
            ask("DescribeLogDirs", "another partition", versions=ALL, topics=[{"topic": "${t}", "partitions": [5]}]),
            ask("DescribeLogDirs", "another topic", versions=ALL, topics=[{"topic": "nobody", "partitions": [0]}]),
            ask("DescribeLogDirs", "no partition", versions=ALL, topics=[{"topic": "${t}", "partitions": []}]),
            ask("DescribeLogDirs", "no topic", versions=ALL, topics=[]),
        ],
    ),
    Script(
        "coordinators that nobody can find",
        [
            *[
                ask(
                    "FindCoordinator",
                    f"a type of {kind}",
                    versions=range(1, 7),
                    key="k",
                    coordinator_keys=["k", "l"],
                    key_type=kind,
                )
                for kind in (3, -1)
            ],
            *[
                ask(
                    "FindCoordinator",
                    f"a share group's key {key!r}",
                    versions=range(1, 7),
                    key=key,
                    coordinator_keys=[key],
                    key_type=2,
                )
                for key in ("", "g", "g:x:0", "g:AAAAAAAAAAAAAAAAAAAAAA:x", ":AAAAAAAAAAAAAAAAAAAAAA:0")
            ],
            ask("FindCoordinator", "no key", versions=[4, 5, 6], coordinator_keys=[]),
        ],
    ),
]
