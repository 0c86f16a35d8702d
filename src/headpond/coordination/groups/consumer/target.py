"""The next target assignment of a group, when its epoch has moved past the last one.

Not more often than the assignment interval allows (KIP-1263): while a fleet starts, members wait a moment in the old
target's epoch instead of being moved around for each newcomer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.consumer import records
from headpond.coordination.groups.consumer.assignment import NO_TARGET
from headpond.coordination.groups.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec
from headpond.coordination.groups.consumer.group import ConsumerGroup, Draft
from headpond.coordination.groups.consumer.topics import TopicsView
from headpond.model import TopicId


def update_target(draft: Draft, settings: GroupSettings, topics: TopicsView, now_ms: int) -> None:
    group = draft.group
    if not target_is_due(group, settings, now_ms):
        return
    assign = ASSIGNORS[preferred_assignor(group, settings)]
    targets = assign(_spec(group, topics))
    for member_id in sorted(group.members):
        target = targets.get(member_id, NO_TARGET)
        if group.targets.get(member_id) != target:
            draft.write(records.target_assignment(group.group_id, member_id, target))
    draft.write(records.target_epoch(group.group_id, group.epoch, now_ms))


def target_is_due(group: ConsumerGroup, settings: GroupSettings, now_ms: int) -> bool:
    return group.epoch > group.target_epoch and _is_time(group, settings, now_ms)


def preferred_assignor(group: ConsumerGroup, settings: GroupSettings) -> str:
    """What most members ask for; those who do not care do not vote."""
    votes = Counter(member.server_assignor for member in group.members.values())
    supported = [name for name in settings.consumer_assignors if name in ASSIGNORS] or list(ASSIGNORS)
    return max(supported, key=lambda name: votes[name])  # of equals the first


def topic_ids(names: Iterable[str], topics: TopicsView) -> frozenset[TopicId]:
    """Of those that exist."""
    found = (topics.facts(name) for name in names)
    return frozenset(facts.topic_id for facts in found if facts is not None)


def _is_time(group: ConsumerGroup, settings: GroupSettings, now_ms: int) -> bool:
    since_ms = now_ms - group.target_timestamp_ms
    return not 0 <= since_ms < settings.assignment_interval_ms(group.group_id)  # negative: the clock was set back


def _spec(group: ConsumerGroup, topics: TopicsView) -> GroupSpec:
    counts: dict[TopicId, int] = {}
    for name in group.topic_names():
        facts = topics.facts(name)
        if facts is not None:
            counts[facts.topic_id] = facts.partition_count
    members: dict[str, MemberSpec] = {}
    ids_of: dict[frozenset[str], frozenset[TopicId]] = {}
    for member_id, member in group.members.items():
        names = group.subscription_of(member)
        if names not in ids_of:
            ids_of[names] = topic_ids(names, topics)
        members[member_id] = MemberSpec(ids_of[names], member.instance_id, group.target_of(member_id))
    return GroupSpec(members, counts)
