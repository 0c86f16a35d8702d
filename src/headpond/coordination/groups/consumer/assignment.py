"""Partitions by topic: what a member should hold (a target), and what it holds (with the epoch of each)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias

from headpond.model import TopicId

Target: TypeAlias = Mapping[TopicId, frozenset[int]]
Held: TypeAlias = Mapping[TopicId, Mapping[int, int]]
"""Partition -> the member's epoch when it got it (KIP-1251)."""

NO_TARGET: Target = {}
NOTHING_HELD: Held = {}


class OwnedPartitions(Protocol):
    """One topic's partitions in a message."""

    topic_id: bytes
    partitions: list[int]


def partitions_of(held: Held) -> Iterator[tuple[TopicId, int]]:
    for topic_id, partitions in held.items():
        for partition in partitions:
            yield topic_id, partition


def holds_any(owned: Iterable[OwnedPartitions], held: Held) -> bool:
    """Whether one of the partitions that a member says it owns is among ``held``."""
    for topic in owned:
        partitions = held.get(TopicId(topic.topic_id))
        if partitions and not partitions.keys().isdisjoint(topic.partitions):
            return True
    return False


def holds_all(owned: Iterable[OwnedPartitions], held: Held) -> bool:
    for topic in owned:
        partitions = held.get(TopicId(topic.topic_id))
        if partitions is None:
            return False
        if not partitions.keys() >= set(topic.partitions):
            return False
    return True


def same_partitions(one: Held, other: Held) -> bool:
    """Whatever the epochs."""
    return one.keys() == other.keys() and all(
        partitions.keys() == other[topic].keys() for topic, partitions in one.items()
    )


def merged(one: Held, other: Held) -> Held:
    if not other:
        return one
    both = {topic_id: dict(partitions) for topic_id, partitions in one.items()}
    for topic_id, partitions in other.items():
        both.setdefault(topic_id, {}).update(partitions)
    return both
