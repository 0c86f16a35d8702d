"""Names of topics and partitions."""

from __future__ import annotations

from typing import NamedTuple, NewType

TopicId = NewType("TopicId", bytes)
"""The 16 bytes of a topic's UUID, as they stand on the wire and in the store."""

ZERO_TOPIC_ID = TopicId(bytes(16))
NO_LEADER = -1


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
