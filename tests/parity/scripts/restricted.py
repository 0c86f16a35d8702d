"""A broker that makes no topics by itself and deletes none, with other defaults for new ones."""

from __future__ import annotations

from parity.asking import creatable, named
from parity.notation import ALL, Script, ask, topic

SETTINGS = {
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "false",
    "num.partitions": "3",
    "log.retention.hours": "5",
    "message.max.bytes": "2000",
}

SCRIPTS = [
    Script(
        "topics are not made by asking for them",
        [
            ask("Metadata", "twice is no different", versions=ALL, topics=named("nobody")),
            ask("Metadata", "still not there", versions=ALL, topics=named("nobody")),
        ],
    ),
    Script(
        "topics are not deleted",
        each="DeleteTopics",
        steps=[
            topic(),
            ask("DeleteTopics", "one that is there", topic_names=["${t}"], topics=named("${t}"), timeout_ms=5_000),
            ask("DeleteTopics", "one that is not", topic_names=["nobody"], topics=named("nobody"), timeout_ms=5_000),
            ask("DeleteTopics", "no time either", topic_names=["${t}"], topics=named("${t}"), timeout_ms=0),
            ask("DeleteTopics", "nothing", topic_names=[], topics=[], timeout_ms=5_000),
            ask("Metadata", "it is there", topics=named("${t}")),
        ],
    ),
    Script(
        "defaults of new topics",
        each="CreateTopics",
        steps=[
            topic("seed"),
            ask("CreateTopics", "default partitions", topics=[creatable("new-${seed}", -1, -1)]),
            ask(
                "Metadata",
                "made",
                topics=named("new-${seed}"),
                until=lambda answer: (
                    len(answer.topics[0].partitions) == 3 and all(p.leader_id >= 0 for p in answer.topics[0].partitions)
                ),
            ),
        ],
    ),
    Script(
        "settings inherited from the file",
        [
            topic("seed"),
            ask("CreateTopics", topics=[creatable("bare-${seed}")]),
            ask("Metadata", topics=named("bare-${seed}"), until=lambda answer: answer.topics[0].error_code == 0),
            ask(
                "DescribeConfigs",
                "of a topic",
                versions=ALL,
                include_synonyms=True,
                unordered=["results.configs"],
                resources=[
                    {
                        "resource_type": 2,
                        "resource_name": "bare-${seed}",
                        "configuration_keys": ["retention.ms", "max.message.bytes", "segment.bytes"],
                    }
                ],
            ),
            ask(
                "DescribeConfigs",
                "of the broker",
                versions=ALL,
                include_synonyms=True,
                unordered=["results.configs"],
                resources=[
                    {
                        "resource_type": 4,
                        "resource_name": "1",
                        "configuration_keys": [
                            "log.retention.hours",
                            "log.retention.ms",
                            "log.retention.minutes",
                            "message.max.bytes",
                            "num.partitions",
                            "delete.topic.enable",
                        ],
                    }
                ],
            ),
        ],
    ),
]
