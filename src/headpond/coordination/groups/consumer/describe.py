"""ConsumerGroupDescribe: v0-1.

Behaviour   what a member holds includes what it still has to give up; topics that do not exist any more are left out
Versions    v1 the type of each member: 0 speaks the classic protocol, 1 the new one
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headpond.coordination.groups.consumer.assignment import merged
from headpond.coordination.groups.consumer.group import ConsumerGroup
from headpond.coordination.groups.consumer.member import Member
from headpond.coordination.groups.consumer.topics import TopicsView
from headpond.model import ErrorCode, TopicId
from headpond.protocol.schema.consumer_group_describe import ConsumerGroupDescribeResponse as Response

CLASSIC, CONSUMER = 0, 1


def described(group: ConsumerGroup, topics: TopicsView, assignor: str) -> Response.DescribedGroup:
    return Response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=assignor,
        members=[_member(group, group.members[member_id], topics) for member_id in sorted(group.members)],
    )


def not_described(group_id: str, why: str) -> Response.DescribedGroup:
    return Response.DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=why)


def _member(group: ConsumerGroup, member: Member, topics: TopicsView) -> Response.Member:
    return Response.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(merged(member.assigned, member.revoking), topics),
        target_assignment=_assignment(group.target_of(member.member_id), topics),
        member_type=CLASSIC if member.is_classic else CONSUMER,
    )


def _assignment(held: Mapping[TopicId, Iterable[int]], topics: TopicsView) -> Response.Assignment:
    named = [(topics.name_of(topic_id), topic_id) for topic_id in sorted(held)]
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(held[topic_id]))
            for name, topic_id in named
            if name is not None
        ]
    )
