"""``uniform``: members hold equally many partitions, whatever their topics, and keep what they have.

Balance comes before stickiness: nobody holds more than one partition above another, and to get there as few partitions
as possible move. Where subscriptions differ, see ``mixed.py``.

    quota = partitions // members, and the first `partitions % members` that can use it get one more
      1. everybody keeps what it holds, up to its quota
      2. what nobody holds goes to those below their quota
"""

from __future__ import annotations

from headpond.coordination.groups.consumer.assignment import Target
from headpond.coordination.groups.consumer.assignors.mixed import assign_mixed
from headpond.coordination.groups.consumer.assignors.spec import GroupSpec
from headpond.model import TopicId


def assign_uniformly(spec: GroupSpec) -> dict[str, Target]:
    return _assign_equal(spec) if spec.is_homogeneous else assign_mixed(spec)


def _assign_equal(spec: GroupSpec) -> dict[str, Target]:
    if not spec.members:
        return {}
    topics = sorted(next(iter(spec.members.values())).topics)
    unassigned = {(topic_id, each): None for topic_id in topics for each in range(spec.partition_counts[topic_id])}
    share, odd = divmod(len(unassigned), len(spec.members))
    held = {member_id: _claimed(spec.members[member_id].target, unassigned) for member_id in sorted(spec.members)}
    quota = {}
    # Those who hold more than the share keep one of the odd partitions, as long as there are any.
    for member_id, partitions in sorted(held.items(), key=lambda each: -len(each[1])):
        quota[member_id] = share + (odd > 0)
        odd -= 1
        unassigned.update(dict.fromkeys(partitions[quota[member_id] :]))
        del partitions[quota[member_id] :]
    left = iter(sorted(unassigned))
    for member_id, partitions in held.items():
        partitions.extend(next(left) for _ in range(quota[member_id] - len(partitions)))
    return {member_id: _by_topic(partitions) for member_id, partitions in held.items()}


def _claimed(target: Target, unassigned: dict[tuple[TopicId, int], None]) -> list[tuple[TopicId, int]]:
    """What of it still exists, taken out of ``unassigned``; what somebody claimed before is not claimed twice."""
    wanted = [(topic_id, each) for topic_id in sorted(target) for each in sorted(target[topic_id])]
    claimed = [partition for partition in wanted if partition in unassigned]
    for partition in claimed:
        del unassigned[partition]
    return claimed


def _by_topic(partitions: list[tuple[TopicId, int]]) -> Target:
    topics: dict[TopicId, set[int]] = {}
    for topic_id, partition in partitions:
        topics.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(numbers) for topic_id, numbers in topics.items()}
