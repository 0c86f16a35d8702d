"""The way of one member to its target: give up first, receive afterwards.

    target  A{0,1} B{2}            held  A{1,3}
      1. revoke A3                 stay in the epoch until the member no longer names it among what it owns
      2. hold A1, get A0 and B2    in the target's epoch; what another member still holds comes with a later heartbeat

A partition has one holder at any time: it is free only when its holder has said that it gave it up, or is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from headpond.coordination.groups.consumer.assignment import (
    NOTHING_HELD,
    Held,
    OwnedPartitions,
    Target,
    holds_any,
    merged,
)
from headpond.coordination.groups.consumer.member import Member, MemberState
from headpond.model import BrokerError, ErrorCode, TopicId

_NOTHING: frozenset[int] = frozenset()


class Goal(NamedTuple):
    """Where the member is to go, and what stands in its way."""

    epoch: int
    target: Target
    subscribed: frozenset[TopicId]
    is_held_by_other: Callable[[TopicId, int], bool]


def reconcile(
    member: Member, goal: Goal, owned: Sequence[OwnedPartitions] | None, *, subscription_changed: bool
) -> Member:
    """The member's next step, or the member itself when it has to wait. ``owned``: what it says it holds; None: it
    did not say, which is no news."""
    if member.state is MemberState.STABLE:
        if member.epoch != goal.epoch:
            return _step(member, goal, owned, member.epoch)
        return _without_unsubscribed(member, goal, owned) if subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _still_owns(owned, member.revoking):
            return _without_unsubscribed(member, goal, owned) if subscription_changed else member
        # What had to be given up may have come from a changed subscription, ahead of the next target.
        return _step(member, goal, owned, min(member.epoch + 1, goal.epoch))
    if member.state is MemberState.UNKNOWN:
        if owned is None or owned:
            raise BrokerError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        return _step(member, goal, owned, goal.epoch)
    return _step(member, goal, owned, member.epoch)


def _step(member: Member, goal: Goal, owned: Sequence[OwnedPartitions] | None, epoch: int) -> Member:
    kept: dict[TopicId, dict[int, int]] = {}
    revoking: dict[TopicId, dict[int, int]] = {}
    free: dict[TopicId, list[int]] = {}
    has_to_wait = False
    for topic_id in sorted(goal.target.keys() | member.assigned.keys()):
        wanted = goal.target.get(topic_id, _NOTHING) if topic_id in goal.subscribed else _NOTHING
        held = member.assigned.get(topic_id, {})
        for partition, since_epoch in held.items():
            (kept if partition in wanted else revoking).setdefault(topic_id, {})[partition] = since_epoch
        for partition in sorted(wanted - held.keys()):
            if goal.is_held_by_other(topic_id, partition):
                has_to_wait = True
            else:
                free.setdefault(topic_id, []).append(partition)
    if revoking and _still_owns(owned, revoking):
        return member.at_epoch(epoch, state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking)
    for topic_id, partitions in free.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, goal.epoch))
    state = MemberState.UNRELEASED_PARTITIONS if has_to_wait else MemberState.STABLE
    return member.at_epoch(goal.epoch, state=state, assigned=kept, revoking=NOTHING_HELD)


def _without_unsubscribed(member: Member, goal: Goal, owned: Sequence[OwnedPartitions] | None) -> Member:
    """The new target will come with a later assignment; what the member no longer wants it gives up now."""
    dropped = {topic_id: held for topic_id, held in member.assigned.items() if topic_id not in goal.subscribed}
    if not dropped:
        return member
    kept = {topic_id: held for topic_id, held in member.assigned.items() if topic_id in goal.subscribed}
    revoking = merged(member.revoking, dropped)
    if _still_owns(owned, revoking):
        return member.changed(state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking)
    return member.changed(assigned=kept)


def _still_owns(owned: Sequence[OwnedPartitions] | None, held: Held) -> bool:
    return owned is None or holds_any(owned, held)
