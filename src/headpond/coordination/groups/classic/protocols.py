"""What the members of a group agree on: one assignor that all of them support, elected by votes; and, where the
members are consumers, the topics that they name in its metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Set
from struct import Struct

from headpond.coordination.groups.classic.member import Member
from headpond.coordination.partition import java_hash
from headpond.protocol.codec import decoder
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.schema.consumer_protocol import ConsumerProtocolSubscription

CONSUMER = "consumer"
"""The protocol type of consumers; Connect's workers, for one, have their own."""

_i16 = Struct(">h")


class Support:
    """How many members support each protocol."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, member: Member) -> None:
        self._counts.update({name for name, _ in member.protocols})

    def remove(self, member: Member) -> None:
        for name in {name for name, _ in member.protocols}:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]

    def by_all(self, member_count: int) -> set[str]:
        return {name for name, count in self._counts.items() if count == member_count}

    def has_one_for_all(self, names: Iterable[str], member_count: int) -> bool:
        return any(self._counts.get(name, 0) == member_count for name in names)


def elected(members: Collection[Member], candidates: Set[str]) -> str:
    """The candidate with most votes. Between equals, the one that Kafka takes: the first in the order of a Java hash
    table, so that a group that moves between the two keeps its assignor."""
    votes = Counter(member.vote(candidates) for member in members)
    slots = 16
    while len(votes) > slots * 3 // 4:
        slots *= 2

    def place(name: str) -> int:
        spread = java_hash(name) & 0xFFFFFFFF
        return (spread ^ spread >> 16) & (slots - 1)

    return min(votes, key=lambda name: (-votes[name], place(name), name))


def subscribed_topics(members: Iterable[Member], protocol_name: str) -> frozenset[str] | None:
    """Of consumers; None when the metadata of one can't be read. Newer versions only append to version 0."""
    topics: set[str] = set()
    decode = decoder(ConsumerProtocolSubscription, 0)
    for member in members:
        metadata = member.metadata(protocol_name)
        if len(metadata) < _i16.size:
            return None
        try:
            subscription, _ = decode(metadata, _i16.size)
        except MalformedMessage:
            return None
        topics.update(subscription.topics)
    return frozenset(topics)
