"""Committed offsets in memory: by group, topic and partition, in maps that the garbage collector has no work with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

NO_TIME = -1


# A million of these must not slow a collection down: they point at nothing that could point back.
class CommittedOffset(msgspec.Struct, frozen=True, gc=False):
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int
    """An age of its own, given by an old client; NO_TIME: the broker's retention counts."""
    topic_id: bytes
    """Of the topic that it was committed for; zero: nobody said."""
    position: int
    """Its place in the log among all offsets: of two for one partition, the larger is the newer."""


OffsetsOfTopic = dict[int, CommittedOffset]
OffsetsOfGroup = dict[str, OffsetsOfTopic]
_NOTHING: Mapping[str, OffsetsOfTopic] = MappingProxyType({})


class Offsets:
    def __init__(self) -> None:
        self.by_group: dict[str, OffsetsOfGroup] = {}
        self.count = 0

    def of_group(self, group_id: str) -> Mapping[str, OffsetsOfTopic]:
        return self.by_group.get(group_id, _NOTHING)

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        topics = self.by_group.get(group_id)
        if topics is None or (partitions := topics.get(topic)) is None:
            return None
        return partitions.get(partition)

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        topics = self.by_group.get(group_id)
        if topics is None:
            topics = self.by_group[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        if partition not in partitions:
            self.count += 1
        partitions[partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self.by_group.get(group_id)
        if topics is None or (partitions := topics.get(topic)) is None or partitions.pop(partition, None) is None:
            return
        self.count -= 1
        if not partitions:
            del topics[topic]
            if not topics:
                del self.by_group[group_id]

    def __iter__(self) -> Iterator[tuple[str, str, int, CommittedOffset]]:
        for group_id, topics in self.by_group.items():
            for topic, partitions in topics.items():
                for partition, committed in partitions.items():
                    yield group_id, topic, partition, committed
