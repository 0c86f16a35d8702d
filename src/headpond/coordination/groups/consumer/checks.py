"""What members may not do: Kafka's rules, codes and words."""

from __future__ import annotations

from collections.abc import Sequence

from headpond.coordination.groups.consumer.assignment import OwnedPartitions, holds_all
from headpond.coordination.groups.consumer.member import JOINING_EPOCH, LEFT_FOR_NOW_EPOCH, Member
from headpond.coordination.groups.consumer.topics import TopicsView
from headpond.coordination.groups.group import CommittedPartition
from headpond.model import ZERO_TOPIC_ID, BrokerError, ErrorCode
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

MEMBER_ID_FROM_CLIENT_VERSION = 1
_JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""What Java's ``trim`` takes away."""


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """What is wrong whatever the group looks like."""
    epoch = request.member_epoch
    if version >= MEMBER_ID_FROM_CLIENT_VERSION or epoch > 0 or epoch == -1:
        _refuse_if(_is_blank(request.member_id), "MemberId can't be empty.")
    _refuse_if(_is_blank(request.group_id), "GroupId can't be empty.")
    _refuse_if(_is_blank(request.instance_id), "InstanceId can't be empty.")
    _refuse_if(_is_blank(request.rack_id), "RackId can't be empty.")
    if epoch == 0:
        _refuse_if(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request.")
        _refuse_if(request.topic_partitions != [], "TopicPartitions must be empty when (re-)joining.")
        _refuse_if(
            request.subscribed_topic_names is None and request.subscribed_topic_regex is None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        )
    elif epoch == LEFT_FOR_NOW_EPOCH:
        _refuse_if(request.instance_id is None, "InstanceId can't be null.")
    else:
        _refuse_if(epoch < LEFT_FOR_NOW_EPOCH, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def check_epoch(member: Member, epoch: int, owned: Sequence[OwnedPartitions] | None) -> None:
    """A member may lag by one epoch, if it does not claim what it does not hold: the answer may have been lost. And it
    may join anew, which says that it holds nothing."""
    if epoch in (member.epoch, JOINING_EPOCH):
        return
    lags = epoch < member.epoch
    if lags and epoch == member.previous_epoch and owned is not None and holds_all(owned, member.assigned):
        return
    raise BrokerError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'smaller' if lags else 'greater'} member epoch ({epoch}) than the one "
        f"known by the group coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def check_instance_is_known(member: Member | None, instance_id: str) -> Member:
    if member is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    return member


def check_instance_is_of(member: Member, member_id: str) -> None:
    if member.member_id != member_id:
        raise BrokerError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {member.instance_id} was fenced by member {member.member_id}.",
        )


def check_instance_is_released(member: Member, member_id: str) -> None:
    if member.epoch != LEFT_FOR_NOW_EPOCH:
        raise BrokerError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {member.instance_id} cannot join the group because the "
            f"instance id is owned by {member.member_id} member.",
        )


def check_commit(member: Member, epoch: int, partitions: Sequence[CommittedPartition], topics: TopicsView) -> None:
    """An older epoch will do for partitions that the member has held since then (KIP-1251), be it a classic one."""
    if epoch == member.epoch:
        return
    if epoch > member.epoch or not partitions:
        raise _stale(member, epoch)
    for topic, partition, given_id in partitions:
        facts = topics.facts(topic) if given_id == ZERO_TOPIC_ID else None
        topic_id = given_id if facts is None else facts.topic_id
        since_epoch = member.assigned.get(topic_id, {}).get(partition)
        if since_epoch is None:
            since_epoch = member.revoking.get(topic_id, {}).get(partition)
        if since_epoch is None or epoch < since_epoch:
            raise _stale(member, epoch)


def check_fetch(member: Member, epoch: int) -> None:
    if epoch != member.epoch:
        raise _stale(member, epoch)


def _stale(member: Member, epoch: int) -> BrokerError:
    if member.is_classic:
        return BrokerError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The received generation id {epoch} does not match the expected member epoch {member.epoch}.",
        )
    return BrokerError(
        ErrorCode.STALE_MEMBER_EPOCH,
        f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}.",
    )


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip(_JAVA_BLANKS)


def _refuse_if(is_wrong: bool, why: str) -> None:
    if is_wrong:
        raise BrokerError(ErrorCode.INVALID_REQUEST, why)
