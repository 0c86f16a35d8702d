"""What became of the partitions between two looks: which are gone, new, or not what they were. Pure.

change = compare(start, ends)
change.losses      sentences: records that the query can't read any more
change.kept        where reading goes on if that is accepted
change.arrived     partitions that the query has not seen: they begin at their earliest offset
"""

from __future__ import annotations

from typing import NamedTuple

from headpond.model import TopicPartition
from headpond.spark.reading.offsets import Offsets


class Change(NamedTuple):
    kept: dict[TopicPartition, int]
    arrived: list[TopicPartition]
    losses: list[str]


def compare(start: Offsets, ends: Offsets) -> Change:
    """``start``: where the query is; ``ends``: the partitions that there are now, and their ends."""
    kept: dict[TopicPartition, int] = {}
    arrived: list[TopicPartition] = []
    losses: list[str] = []
    anew: set[str] = set()
    for tp in sorted(ends.by_partition):
        offset, end = start.get(tp), ends.by_partition[tp]
        if offset is None:
            arrived.append(tp)
        elif not start.is_same_topic(tp.topic, ends):
            arrived.append(tp)
            anew.add(tp.topic)
        elif end < offset:
            losses.append(f"{tp} ends at offset {end} now, and was read up to {offset} before")
            kept[tp] = end
        else:
            kept[tp] = offset
    losses += [f"topic {topic} was deleted and created again" for topic in sorted(anew)]
    gone = [tp for tp in sorted(start.by_partition) if tp not in ends.by_partition and tp.topic not in anew]
    if gone:
        losses.append(f"{', '.join(map(str, gone))} {'is' if len(gone) == 1 else 'are'} gone")
    return Change(kept, arrived, losses)


def late_arrivals(begins: dict[TopicPartition, int], start: Offsets) -> list[str]:
    """Partitions that came while the query ran and have lost their first records already. (Of a topic that was made
    anew this need not be said: what is lost of it was said.)"""
    return [
        f"the new {tp} begins at offset {offset} instead of 0"
        for tp, offset in sorted(begins.items())
        if offset > 0 and start.get(tp) is None
    ]
