"""What classic consumers say inside JoinGroup and SyncGroup: a version, then a subscription or an assignment.

Newer versions only append to older ones, so one that is not known yet is read as the newest that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct

from headpond.coordination.groups.consumer.topics import TopicsView
from headpond.model import TopicId
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headpond.protocol.schema.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_i16 = Struct(">h")


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Raises ``MalformedMessage``."""
    version = _version(data, ConsumerProtocolSubscription.VERSIONS)
    subscription: ConsumerProtocolSubscription = decoder(ConsumerProtocolSubscription, version)(data, _i16.size)[0]
    return subscription


def owned(
    subscription: ConsumerProtocolSubscription, topics: TopicsView
) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
    """What the member says it owns, as the new protocol says it."""
    found = [(topics.facts(topic.topic), topic.partitions) for topic in subscription.owned_partitions]
    return [
        ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=facts.topic_id, partitions=partitions)
        for facts, partitions in found
        if facts is not None
    ]


def owned_partitions(subscription: ConsumerProtocolSubscription, topics: TopicsView) -> set[tuple[TopicId, int]]:
    """The same, of the partitions that exist, one by one."""
    found: set[tuple[TopicId, int]] = set()
    for topic in subscription.owned_partitions:
        facts = topics.facts(topic.topic)
        if facts is not None:
            found.update((facts.topic_id, each) for each in topic.partitions if 0 <= each < facts.partition_count)
    return found


def read_assignment(data: bytes, topics: TopicsView) -> tuple[dict[TopicId, set[int]], bytes]:
    """Of the topics that exist; and what the assignor added for itself. Raises ``MalformedMessage``."""
    if not data:  # joined, and never synced
        return {}, b""
    version = _version(data, ConsumerProtocolAssignment.VERSIONS)
    assignment: ConsumerProtocolAssignment = decoder(ConsumerProtocolAssignment, version)(data, _i16.size)[0]
    held: dict[TopicId, set[int]] = {}
    for topic in assignment.assigned_partitions:
        facts = topics.facts(topic.topic)
        if facts is not None:
            held.setdefault(facts.topic_id, set()).update(topic.partitions)
    return held, assignment.user_data or b""


def written_assignment(held: Mapping[TopicId, Iterable[int]], topics: TopicsView, *, like: bytes) -> bytes:
    """In the version of the subscription ``like``."""
    version = _version(like, ConsumerProtocolAssignment.VERSIONS)
    named = sorted((topics.name_of(topic_id) or "", topic_id) for topic_id in held)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=sorted(held[topic_id]))
            for name, topic_id in named
            if name
        ]
    )
    return _i16.pack(version) + encoder(ConsumerProtocolAssignment, version)(assignment)


def _version(data: bytes, known: range) -> int:
    if len(data) < _i16.size:
        raise MalformedMessage("an embedded consumer protocol without a version")
    version: int = _i16.unpack_from(data)[0]
    if version < 0:
        raise MalformedMessage(f"an embedded consumer protocol of version {version}")
    return min(version, known[-1])
