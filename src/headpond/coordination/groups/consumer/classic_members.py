"""JoinGroup, SyncGroup and Heartbeat of classic members in a consumer group (LeaveGroup: ``groups.py``).

A member's generation is its epoch. JoinGroup says what the member owns and takes its next step; SyncGroup tells it
what it holds now; Heartbeat sends it back to JoinGroup whenever there is a step to take. Nobody leads: the broker
assigns. Cooperative and eager consumers alike give up first what they must, since they say what they own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from headpond.coordination.groups.classic.protocols import CONSUMER
from headpond.coordination.groups.consumer import embedded, records
from headpond.coordination.groups.consumer.assignment import merged
from headpond.coordination.groups.consumer.checks import check_instance_is_known, check_instance_is_of
from headpond.coordination.groups.consumer.conversion import classic_members_may_join
from headpond.coordination.groups.consumer.group import ConsumerGroup, Draft
from headpond.coordination.groups.consumer.heartbeat import Change, Moment, put_member, replace_static, take_step
from headpond.coordination.groups.consumer.member import ClassicMetadata, Member, MemberState, with_epochs
from headpond.coordination.groups.consumer.subscription import bump_epoch
from headpond.coordination.groups.consumer.target import target_is_due, update_target
from headpond.coordination.groups.consumer.topics import TopicsView, metadata_hash
from headpond.model import BrokerError, ErrorCode, TopicId
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.schema.consumer_group_records import ConsumerGroupMemberMetadataValue
from headpond.protocol.schema.consumer_protocol import ConsumerProtocolSubscription
from headpond.protocol.schema.join_group import JoinGroupRequest, JoinGroupResponse
from headpond.protocol.schema.sync_group import SyncGroupRequest, SyncGroupResponse

ClassicProtocol = ConsumerGroupMemberMetadataValue.ClassicProtocol


class Joining(NamedTuple):
    """One JoinGroup, read."""

    request: JoinGroupRequest
    member_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    subscription: ConsumerProtocolSubscription


def check_protocols(group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> None:
    """One of them must be supported by all classic members: they may be among themselves again one day."""
    names = {protocol.name for protocol in request.protocols}
    for member in group.members.values():
        if member.classic is not None:
            names &= {protocol.name for protocol in member.classic.supported_protocols}
    if request.protocol_type != CONSUMER or not names:
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")


def read_subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return embedded.read_subscription(request.protocols[0].metadata)
    except MalformedMessage as malformed:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(malformed)) from None


def put_classic_member(draft: Draft, joining: Joining) -> tuple[Member, Change]:
    before = _member_before(draft, joining)
    request, subscription = joining.request, joining.subscription
    member = before.changed(
        instance_id=before.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",  # classic consumers resolve theirs themselves
        client_id=joining.client_id,
        client_host=joining.client_host,
        classic=ClassicMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=protocol.name, metadata=protocol.metadata) for protocol in request.protocols
            ],
        ),
    )
    return member, put_member(draft, before, member)


def strays(group: ConsumerGroup, joining: Joining, topics: TopicsView) -> set[tuple[TopicId, int]]:
    """What the member says it owns, and the group does not know that it does: it has missed a rebalance."""
    if not joining.request.member_id:
        return set()  # an instance that comes anew
    owned = embedded.owned_partitions(joining.subscription, topics)
    return {each for each in owned if group.owners.get(each) != joining.member_id}


def must_give_up(draft: Draft, member: Member, partitions: Collection[tuple[TopicId, int]]) -> Member:
    """They are its own until it has: nobody else had got them."""
    if not partitions:
        return member
    by_topic: dict[TopicId, set[int]] = {}
    for topic_id, partition in partitions:
        by_topic.setdefault(topic_id, set()).add(partition)
    revoking = merged(member.revoking, with_epochs(by_topic.items(), member.epoch))
    member = member.changed(state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)
    draft.write(records.current_assignment(draft.group.group_id, member))
    return member


def move_on(draft: Draft, change: Change, moment: Moment) -> None:
    if change.is_any or draft.group.metadata_is_due:
        bump_epoch(draft, moment.topics, is_forced=change.is_any)
    update_target(draft, moment.settings, moment.topics, moment.now_ms)


def step(draft: Draft, member: Member, joining: Joining, change: Change, moment: Moment) -> Member:
    return take_step(draft, member, embedded.owned(joining.subscription, moment.topics), change, moment)


def joined(member: Member) -> JoinGroupResponse:
    classic = member.classic or ClassicMetadata()
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.epoch,
        protocol_type=CONSUMER,
        protocol_name=classic.supported_protocols[0].name,
    )


def synced(group: ConsumerGroup, member: Member, request: SyncGroupRequest, topics: TopicsView) -> SyncGroupResponse:
    classic = member.classic or ClassicMetadata()
    protocol = classic.supported_protocols[0]
    if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, protocol.name):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # Who has something to give up has joined already, and joins again when that is done. An epoch without a target has
    # nothing for anybody yet.
    if group.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=embedded.written_assignment(member.assigned, topics, like=protocol.metadata),
    )


def must_join_again(group: ConsumerGroup, member: Member, moment: Moment) -> bool:
    return (
        member.epoch < group.target_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
        or _must_bring_target(group, moment)
    )


def _must_bring_target(group: ConsumerGroup, moment: Moment) -> bool:
    """A due target comes with the next heartbeat of the new protocol. Where nobody speaks that any more, a classic
    member has to join for it: Kafka does not ask them to, and there what a member that is gone held, and what a topic
    grew by, has no reader."""
    if group.classic_member_count < len(group.members) or not classic_members_may_join(moment.settings):
        return False
    if group.epoch == group.target_epoch and group.metadata_is_due:
        group.metadata_is_due = metadata_hash(group.topic_names(), moment.topics) != group.metadata_hash
        return group.metadata_is_due
    return target_is_due(group, moment.settings, moment.now_ms)


def require_classic(group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int) -> Member:
    if instance_id is None:
        member = group.require(member_id)
    else:
        member = check_instance_is_known(group.static_member(instance_id), instance_id)
        check_instance_is_of(member, member_id)
    if not member.is_classic:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol.")
    if member.epoch != generation_id:
        raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
    return member


def _member_before(draft: Draft, joining: Joining) -> Member:
    instance_id, member_id = joining.request.group_instance_id, joining.member_id
    existing = draft.group.static_member(instance_id)
    if instance_id is None:
        if any(topic.partitions for topic in joining.subscription.owned_partitions):
            return draft.group.require(member_id)  # else put out, and has not noticed: it must give them up first
        return draft.group.members.get(member_id) or Member(member_id)
    if not joining.request.member_id:
        return Member(member_id) if existing is None else replace_static(draft, existing, member_id)
    existing = check_instance_is_known(existing, instance_id)
    check_instance_is_of(existing, member_id)
    return existing
