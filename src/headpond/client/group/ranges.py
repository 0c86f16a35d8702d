"""Kafka's RangeAssignor, without racks: each topic on its own, cut into runs of neighbouring partitions, one for each
subscriber. Static members come first, by instance id, so that a restart does not move the cuts; the first subscribers
get the odd partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headpond.model import TopicPartition

RANGE = "range"


class Subscriber(NamedTuple):
    member_id: str
    instance_id: str | None
    topics: Sequence[str]


def assign_ranges(
    subscribers: Sequence[Subscriber], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """By member id, for every subscriber; sorted. A topic without a count has no partitions."""
    assigned: dict[str, list[TopicPartition]] = {one.member_id: [] for one in subscribers}
    ordered = sorted(subscribers, key=_order)
    for topic in sorted(partition_counts):
        of_topic = [one.member_id for one in ordered if topic in one.topics]
        start = 0
        for place, member_id in enumerate(of_topic):
            share, odd = divmod(partition_counts[topic], len(of_topic))
            end = start + share + (place < odd)
            assigned[member_id] += [TopicPartition(topic, partition) for partition in range(start, end)]
            start = end
    return assigned


def _order(one: Subscriber) -> tuple[bool, str]:
    return (True, one.member_id) if one.instance_id is None else (False, one.instance_id)
