"""Members that leave, are fenced or are thrown out: their partitions are free at once, and the group moves on."""

from __future__ import annotations

from collections.abc import Sequence

from headpond.coordination.groups.consumer import records
from headpond.coordination.groups.consumer.assignment import NOTHING_HELD
from headpond.coordination.groups.consumer.group import Draft
from headpond.coordination.groups.consumer.member import JOINING_EPOCH, LEFT_FOR_NOW_EPOCH, Member, with_epochs
from headpond.coordination.groups.consumer.subscription import bump_epoch, drop_unused_regexes
from headpond.coordination.groups.consumer.topics import TopicsView


def remove_members(draft: Draft, members: Sequence[Member], topics: TopicsView) -> None:
    group_id = draft.group.group_id
    for member in members:
        draft.write(*records.no_member(group_id, member.member_id))
    drop_unused_regexes(draft, [member.topic_regex for member in members])
    bump_epoch(draft, topics, is_forced=True)


def leave_for_now(draft: Draft, member: Member) -> None:
    """A static member will be back: what it holds waits for it until its session ends."""
    left = member.changed(
        epoch=LEFT_FOR_NOW_EPOCH,
        assigned=with_epochs(member.assigned.items(), JOINING_EPOCH),
        revoking=NOTHING_HELD,
    )
    draft.write(records.current_assignment(draft.group.group_id, left))
