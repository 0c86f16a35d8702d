"""The records that make up a consumer group, as Kafka 4.3 writes them."""

from __future__ import annotations

from collections.abc import Iterable

from headpond.coordination.groups.consumer.assignment import Target
from headpond.coordination.groups.consumer.member import Member
from headpond.coordination.records import CoordinatorRecord
from headpond.protocol.schema.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)


def member_metadata(group_id: str, member: Member) -> CoordinatorRecord:
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.metadata_value())


def current_assignment(group_id: str, member: Member) -> CoordinatorRecord:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.assignment_value())


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), value)


def target_assignment(group_id: str, member_id: str, target: Target) -> CoordinatorRecord:
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    topics = [
        ConsumerGroupTargetAssignmentMemberValue.TopicPartition(topic_id=topic_id, partitions=sorted(target[topic_id]))
        for topic_id in sorted(target)
    ]
    return CoordinatorRecord(key, ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics))


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """``timestamp_ms``: when it was computed; 0: not by us."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def resolved_regex(
    group_id: str, regex: str, topics: Iterable[str], *, version: int, timestamp_ms: int
) -> CoordinatorRecord:
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp_ms)
    return CoordinatorRecord(key, value)


# --- tombstones


def no_regex(group_id: str, regex: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def no_partition_metadata(group_id: str) -> CoordinatorRecord:
    """Kafka 4.0 kept the subscribed topics in such a record; since 4.1 there is the hash."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def no_member(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """In this order, so that half of it still says where the member stands."""
    ids = {"group_id": group_id, "member_id": member_id}
    return [
        CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(**ids), None),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(**ids), None),
        CoordinatorRecord(ConsumerGroupMemberMetadataKey(**ids), None),
    ]


def no_group(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> list[CoordinatorRecord]:
    ids = [{"group_id": group_id, "member_id": member_id} for member_id in member_ids]
    return [
        *(CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(**each), None) for each in ids),
        *(CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(**each), None) for each in ids),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(CoordinatorRecord(ConsumerGroupMemberMetadataKey(**each), None) for each in ids),
        *(no_regex(group_id, regex) for regex in regexes),
        no_partition_metadata(group_id),
        CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]
