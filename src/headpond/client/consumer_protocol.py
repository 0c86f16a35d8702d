"""What classic consumers put into JoinGroup and SyncGroup as opaque bytes: a version, then a subscription or an
assignment. Newer versions only append to version 0, which is all that is read here. Bytes that can't be read are the
other clients' own affair: they count as no topics and no partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from headpond.client.routing import topics_of
from headpond.model import TopicPartition
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.schema.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

VERSION = 3
"""Which is written, as Kafka's own clients do."""

_version = Struct(">h")
_read_subscription = decoder(ConsumerProtocolSubscription, 0)
_read_assignment = decoder(ConsumerProtocolAssignment, 0)
_write_subscription = encoder(ConsumerProtocolSubscription, VERSION)
_write_assignment = encoder(ConsumerProtocolAssignment, VERSION)


def read_subscription(data: bytes) -> list[str]:
    """The topics, sorted."""
    try:
        subscription, _ = _read_subscription(data, _version.size)
    except MalformedMessage:
        return []
    return sorted(set(subscription.topics))


def write_subscription(topics: Iterable[str]) -> bytes:
    """Of a member that owns nothing at the moment, as every eager one when it joins."""
    return _version.pack(VERSION) + _write_subscription(ConsumerProtocolSubscription(topics=list(topics)))


def read_assignment(data: bytes) -> list[TopicPartition]:
    """Sorted."""
    try:
        assignment, _ = _read_assignment(data, _version.size)
    except MalformedMessage:
        return []
    return sorted(
        TopicPartition(topic.topic, partition)
        for topic in assignment.assigned_partitions
        for partition in topic.partitions
    )


def write_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    rows = [
        ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=[tp.partition for tp in tps])
        for name, tps in topics_of(partitions).items()
    ]
    return _version.pack(VERSION) + _write_assignment(ConsumerProtocolAssignment(assigned_partitions=rows))
