"""What a micro-batch takes, and which task reads what. Pure; the arithmetic is that of Spark's Kafka connector.

Splits (``minPartitions``, ``maxRecordsPerPartition``) let several tasks read one partition: the order of records within
it is then no longer the order of rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from headpond.model import TopicPartition
from headpond.spark.reading.offsets import Offsets
from headpond.spark.reading.options import Rate


class OffsetRange(NamedTuple):
    tp: TopicPartition
    from_offset: int
    end_offset: int

    @property
    def size(self) -> int:
        return self.end_offset - self.from_offset


def limit_in_proportion(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], offsets_max: int
) -> dict[TopicPartition, int]:
    """Where a batch ends that takes about ``offsets_max`` of all: each partition in proportion to what it has, and none
    with something left empty-handed (so that it may be a few more)."""
    sizes = {tp: latest[tp] - start[tp] for tp in latest if latest[tp] > start[tp]}
    total = sum(sizes.values())
    ends = dict(latest)
    for tp, size in sizes.items():
        share = offsets_max * (size / total)
        taken = math.ceil(share) if share < 1 else math.floor(share)
        ends[tp] = min(latest[tp], start[tp] + taken)
    return ends


def is_too_little(
    start: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    rate: Rate,
    *,
    now_ms: int,
    last_batch_ms: int | None,
) -> bool:
    """Whether a batch waits for more records: fewer than ``minOffsetsPerTrigger``, and the last one not long ago."""
    if rate.offsets_min is None or last_batch_ms is None or now_ms - last_batch_ms > rate.delay_ms_max:
        return False
    return sum(max(0, latest[tp] - start[tp]) for tp in latest) < rate.offsets_min


def ranges_between(start: Offsets, end: Offsets) -> list[OffsetRange]:
    """What is to be read between two offsets. A partition that only the end knows, or whose topic is another one by
    then, is new: it enters with the offset that it begins at, and is read from the next batch on."""
    ranges = []
    for tp in sorted(end.by_partition):
        begin = start.get(tp)
        if begin is not None and start.is_same_topic(tp.topic, end):
            ranges.append(OffsetRange(tp, begin, end.by_partition[tp]))
    return [one for one in ranges if one.size > 0]


def split(
    ranges: list[OffsetRange], *, partitions_min: int | None, records_per_partition_max: int | None
) -> list[OffsetRange]:
    """The ranges for tasks: none with more than ``records_per_partition_max`` offsets, about ``partitions_min`` in all
    where partitions are fewer than that."""
    if records_per_partition_max is not None:
        ranges = [part for one in ranges for part in _in_parts(one, math.ceil(one.size / records_per_partition_max))]
    if partitions_min is None or partitions_min <= len(ranges):
        return ranges
    total = sum(one.size for one in ranges)
    # Ranges that stay whole are left out of the proportion of the others, or the large ones would get too few parts.
    whole = {one for one in ranges if _parts_of(one.size, total, partitions_min) == 1}
    parts_left = max(partitions_min - len(whole), 1)
    total_left = total - sum(one.size for one in whole)
    return [
        part
        for one in ranges
        for part in ([one] if one in whole else _in_parts(one, _parts_of(one.size, total_left, parts_left)))
    ]


def _parts_of(size: int, total: int, parts: int) -> int:
    return max(math.floor(size / total * parts + 0.5), 1)


def _in_parts(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    """As even as whole offsets allow."""
    found, from_offset = [], whole.from_offset
    for part in range(parts):
        end_offset = from_offset + (whole.end_offset - from_offset) // (parts - part)
        found.append(OffsetRange(whole.tp, from_offset, end_offset))
        from_offset = end_offset
    return [one for one in found if one.size > 0]
