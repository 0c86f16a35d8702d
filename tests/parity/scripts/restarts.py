"""What a restart leaves as it was: topics and their settings, offsets, deletions, producers, dynamic settings."""

from __future__ import annotations

from typing import Any

from parity.asking import end_offset, fetch, fetch_partition, fetch_topic, list_offsets, named, new_producer, produce
from parity.notation import T0_MS, Restart, Script, ask, batch, topic


def of(sequence: int, *records: str) -> Any:
    """Of today: Kafka forgets a producer by the timestamps of its batches (docs/differences.md)."""
    return batch(*records, producer_id="${pid}", producer_epoch=0, base_sequence=sequence, timestamp_ms="${now}")


def leads(answer: Any) -> bool:
    return all(partition.leader_id >= 0 for partition in answer.topics[0].partitions)


def answers(answer: Any) -> bool:
    return not answer.topics[0].partitions[0].error_code


SCRIPTS = [
    Script(
        "a partition",
        fresh=True,
        steps=[
            topic(),
            produce(batch("a", "b", "c"), "offsets 0-2"),
            produce(batch("d", timestamp_ms=T0_MS + 50), "offset 3"),
            ask(
                "DeleteRecords",
                "the first record deleted",
                topics=[{"name": "${t}", "partitions": [{"partition_index": 0, "offset": 1}]}],
                timeout_ms=5_000,
            ),
            Restart(),
            ask("Metadata", "it leads again", topics=named("${t}"), until=leads),
            list_offsets(-2, label="the start of the log", until=answers),
            end_offset(),
            list_offsets(T0_MS + 1, label="by timestamp"),
            list_offsets(-3, label="the largest timestamp"),
            fetch("from the start", fetch_topic(fetch_partition(1))),
            produce(batch("e"), "the log goes on"),
            end_offset(label="the end, now"),
            fetch("what is new", fetch_topic(fetch_partition(4))),
            ask(
                "OffsetForLeaderEpoch",
                "where epoch 0 ends",
                replica_id=-1,
                topics=[{"topic": "${t}", "partitions": [{"partition": 0, "leader_epoch": 0}]}],
            ),
            fetch("with the epoch of before", fetch_topic(fetch_partition(4, current_leader_epoch=0))),
        ],
    ),
    Script(
        "producers",
        fresh=True,
        steps=[
            topic(),
            new_producer(),
            produce(of(0, "a", "b"), "offsets 0-1"),
            produce(of(2, "c"), "offset 2"),
            Restart(),
            list_offsets(-2, label="the start of the log", until=answers),
            ask("DescribeProducers", topics=[{"name": "${t}", "partition_indexes": [0]}]),
            produce(of(2, "c"), "a duplicate from before"),
            produce(of(0, "a", "b"), "an older one"),
            produce(of(9, "x"), "a gap"),
            produce(of(3, "e"), "the next in sequence"),
            end_offset(),
            new_producer("other"),
        ],
    ),
    Script(
        "topics and settings",
        fresh=True,
        steps=[
            topic(partitions=2, max_message_bytes="5000"),
            topic("gone"),
            ask("DeleteTopics", "one deleted", topics=named("${gone}"), timeout_ms=5_000),
            ask(
                "IncrementalAlterConfigs",
                "settings of all kinds",
                unordered=["responses"],
                resources=[
                    {"resource_type": kind, "resource_name": name, "configs": [{"name": key, "value": value}]}
                    for kind, name, key, value in [
                        (2, "${t}", "segment.ms", "70000"),
                        (4, "", "log.roll.ms", "80000"),
                        (4, "1", "log.retention.ms", "90000"),
                        (32, "g", "consumer.session.timeout.ms", "50000"),
                    ]
                ],
            ),
            Restart(),
            ask("Metadata", "all topics", topics=None, until=leads),
            *[
                ask(
                    "DescribeConfigs",
                    label,
                    include_synonyms=True,
                    unordered=["results.configs"],
                    resources=[{"resource_type": kind, "resource_name": name, "configuration_keys": keys}],
                )
                for label, kind, name, keys in [
                    ("of the topic", 2, "${t}", ["segment.ms", "max.message.bytes", "retention.ms"]),
                    ("of the broker", 4, "1", ["log.roll.ms", "log.retention.ms"]),
                    ("of all brokers", 4, "", ["log.roll.ms"]),
                    ("of the group", 32, "g", ["consumer.session.timeout.ms"]),
                ]
            ],
            ask("ListConfigResources", unordered=["config_resources"]),
        ],
    ),
]
