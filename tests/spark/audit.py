"""Counts what is in a topic with a consumer that is not ours: librdkafka's, read_committed."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

POLL_S = 10.0


class Seen(NamedTuple):
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None
    timestamp_ms: int


def committed(bootstrap: str, topic: str) -> list[Seen]:
    """Every record that a read_committed consumer sees, to the end of each partition, in order. Waits for transactions
    that are still being ended: a commit is answered before its markers are in every partition."""
    ends = _ends(bootstrap, topic)
    consumer = _consumer(bootstrap, "read_committed")
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in ends])
        ended: set[int] = set()
        seen: list[Seen] = []
        while len(ended) < len(ends):
            message = consumer.poll(POLL_S)
            assert message is not None, f"{topic}: no end in sight"
            if message.error() is None:
                seen.append(
                    Seen(
                        message.partition(),
                        message.key(),
                        message.value(),
                        message.headers(),
                        message.timestamp()[1],
                    )
                )
            elif message.error().code() == KafkaError._PARTITION_EOF:
                if message.offset() >= ends[message.partition()]:
                    ended.add(message.partition())
            else:
                raise AssertionError(message.error())
        return seen
    finally:
        consumer.close()


def _ends(bootstrap: str, topic: str) -> dict[int, int]:
    """The high watermark of each partition, open transactions included."""
    consumer = _consumer(bootstrap, "read_uncommitted")
    try:
        partitions = sorted(consumer.list_topics(topic, timeout=POLL_S).topics[topic].partitions)
        return {
            partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=POLL_S)[1]
            for partition in partitions
        }
    finally:
        consumer.close()


def _consumer(bootstrap: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"auditor-{uuid.uuid4().hex}",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )


def values(bootstrap: str, topic: str) -> list[str]:
    return sorted((one.value or b"").decode() for one in committed(bootstrap, topic))
