"""``range``: each topic on its own, cut into as many runs of neighbouring partitions as it has subscribers.

Topics with equally many partitions and the same subscribers are cut alike, so that the same member holds the same
numbers of each: joins by key stay in one place. The price: members early in the order get the odd partitions of every
topic, and the last target counts for nothing. Static members come first, by instance id, so that a restart does not
move the cuts.
"""

from __future__ import annotations

from collections import Counter

from headpond.coordination.groups.consumer.assignment import Target
from headpond.coordination.groups.consumer.assignors.spec import GroupSpec
from headpond.model import TopicId


def assign_ranges(spec: GroupSpec) -> dict[str, Target]:
    subscribers = Counter(topic_id for member in spec.members.values() for topic_id in member.topics)
    place: Counter[TopicId] = Counter()
    assignment: dict[str, Target] = {}
    for member_id in sorted(spec.members, key=lambda each: _order(each, spec.members[each].instance_id)):
        ranges: dict[TopicId, frozenset[int]] = {}
        for topic_id in spec.members[member_id].topics:
            share, odd = divmod(spec.partition_counts[topic_id], subscribers[topic_id])
            start = place[topic_id] * share + min(place[topic_id], odd)
            end = start + share + (place[topic_id] < odd)
            place[topic_id] += 1
            if start < end:
                ranges[topic_id] = frozenset(range(start, end))
        assignment[member_id] = ranges
    return assignment


def _order(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    return (True, member_id) if instance_id is None else (False, instance_id)
