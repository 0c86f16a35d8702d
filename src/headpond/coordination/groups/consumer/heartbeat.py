"""ConsumerGroupHeartbeat of a member that joins or stays: v0-1.

Behaviour   1. the member as it now is; another subscription moves the group to its next epoch
            2. a group in a newer epoch than its target gets a new one, if it is time
            3. the member takes its next step towards its target
            Each step that changes something is a record; a heartbeat that changes nothing writes nothing.
            The answer holds the assignment when it changed, and when the member sent everything (it does after an
            error: it may have lost an answer).
Versions    v1 the member makes its id itself, and may subscribe by a regular expression (KIP-848, KIP-1082)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.consumer import records
from headpond.coordination.groups.consumer.assignment import OwnedPartitions, same_partitions
from headpond.coordination.groups.consumer.checks import (
    check_epoch,
    check_instance_is_known,
    check_instance_is_of,
    check_instance_is_released,
)
from headpond.coordination.groups.consumer.group import Draft
from headpond.coordination.groups.consumer.member import JOINING_EPOCH, Member, with_epochs
from headpond.coordination.groups.consumer.reconciliation import Goal, reconcile
from headpond.coordination.groups.consumer.subscription import bump_epoch, check_regex, drop_unused_regexes
from headpond.coordination.groups.consumer.target import topic_ids, update_target
from headpond.coordination.groups.consumer.topics import TopicsView
from headpond.model import BrokerError, ErrorCode, TopicId
from headpond.protocol.schema.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


class Moment(NamedTuple):
    """What a decision is made with."""

    settings: GroupSettings
    topics: TopicsView
    now_ms: int


class Change(NamedTuple):
    """Of a member's subscription."""

    names: bool
    regex: bool
    is_resolved: bool
    """Nothing has to be looked up first: there is no expression any more, or it was looked up for another member."""

    @property
    def is_any(self) -> bool:
        return self.names or self.regex


# --- who it is


def check_room(draft: Draft, settings: GroupSettings, member_id: str) -> None:
    members_max = settings.consumer_members_max
    if len(draft.group.members) >= members_max and member_id not in draft.group.members:
        raise BrokerError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {members_max} members.",
        )


def dynamic_member(draft: Draft, request: ConsumerGroupHeartbeatRequest, member_id: str) -> Member:
    group = draft.group
    if request.member_epoch == JOINING_EPOCH and member_id not in group.members:
        return Member(member_id)
    member = group.require(member_id)
    check_epoch(member, request.member_epoch, request.topic_partitions)
    return member


def static_member(draft: Draft, request: ConsumerGroupHeartbeatRequest, member_id: str, instance_id: str) -> Member:
    existing = draft.group.static_member(instance_id)
    if request.member_epoch != JOINING_EPOCH:
        existing = check_instance_is_known(existing, instance_id)
        check_instance_is_of(existing, member_id)
        check_epoch(existing, request.member_epoch, request.topic_partitions)
        return existing
    if existing is None:
        return draft.group.members.get(member_id) or Member(member_id)
    if not existing.is_classic:
        check_instance_is_released(existing, member_id)
    return replace_static(draft, existing, member_id)


def replace_static(draft: Draft, existing: Member, member_id: str) -> Member:
    """The same instance under another id takes over what the last one held and was to hold."""
    group_id, target = draft.group.group_id, draft.group.target_of(existing.member_id)
    member = existing.changed(
        member_id=member_id,
        epoch=JOINING_EPOCH,
        previous_epoch=JOINING_EPOCH,
        assigned=with_epochs(existing.assigned.items(), JOINING_EPOCH),
    )
    draft.write(
        *records.no_member(group_id, existing.member_id),
        records.member_metadata(group_id, member),
        records.target_assignment(group_id, member_id, target),
        records.current_assignment(group_id, member),
    )
    return member


# --- what it says


def updated_by(member: Member, request: ConsumerGroupHeartbeatRequest, *, client_id: str, client_host: str) -> Member:
    """What the request leaves out stays as it is."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return member.changed(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=member.topic_regex if regex is None else regex,
        client_id=client_id,
        client_host=client_host,
        classic=None,
    )


def put_member(draft: Draft, before: Member, member: Member) -> Change:
    if member != before:
        draft.write(records.member_metadata(draft.group.group_id, member))
    has_new_regex = member.topic_regex != before.topic_regex
    if has_new_regex:
        drop_unused_regexes(draft, [before.topic_regex])
        if draft.group.regex_counts[member.topic_regex] == 1:
            check_regex(member.topic_regex)
    return Change(
        names=member.topic_names != before.topic_names,
        regex=has_new_regex,
        is_resolved=has_new_regex and (not member.topic_regex or member.topic_regex in draft.group.regexes),
    )


# --- what follows


def take_step(
    draft: Draft, member: Member, owned: Sequence[OwnedPartitions] | None, change: Change, moment: Moment
) -> Member:
    """Towards the target, whichever there is."""
    group, member_id = draft.group, member.member_id
    if not change.is_any and member.is_reconciled_to(group.target_epoch):
        return member

    def is_held_by_other(topic_id: TopicId, partition: int) -> bool:
        return group.owners.get((topic_id, partition), member_id) != member_id

    subscribed = topic_ids(group.subscription_of(member), moment.topics)
    goal = Goal(group.target_epoch, group.target_of(member_id), subscribed, is_held_by_other)
    stepped = reconcile(member, goal, owned, subscription_changed=change.is_any)
    if stepped != member:
        draft.write(records.current_assignment(group.group_id, stepped))
    return stepped


def beat(
    draft: Draft, before: Member, member: Member, request: ConsumerGroupHeartbeatRequest, moment: Moment
) -> ConsumerGroupHeartbeatResponse:
    change = put_member(draft, before, member)
    must_bump = change.names or change.is_resolved or draft.must_move_on
    if must_bump or draft.group.metadata_is_due:
        bump_epoch(draft, moment.topics, is_forced=must_bump)
    update_target(draft, moment.settings, moment.topics, moment.now_ms)
    member = take_step(draft, member, request.topic_partitions, change, moment)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=moment.settings.heartbeat_interval_ms(draft.group.group_id),
    )
    if _is_full(request) or not same_partitions(before.assigned, member.assigned):
        response.assignment = _assignment(member)
    return response


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.member_epoch == JOINING_EPOCH or (
        request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None
    )


def _assignment(member: Member) -> ConsumerGroupHeartbeatResponse.Assignment:
    return ConsumerGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponse.TopicPartitions(
                topic_id=topic_id, partitions=sorted(member.assigned[topic_id])
            )
            for topic_id in sorted(member.assigned)
        ]
    )
