"""What a commit takes, and which task archives what. Pure.

A topic's part of a commit goes to as many tasks as it has work for: a small one to a single task, so that it makes, or
grows, one file. Order does not matter: each row has its partition and offset.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from headpond.model import TopicPartition
from headpond.model.ids import id_text
from headpond.spark.lake.layout import date_of
from headpond.spark.lake.state import Hole, LakeFile, Reach, TopicState
from headpond.spark.reading.offsets import Offsets
from headpond.spark.reading.planning import OffsetRange, limit_in_proportion, split

TASK_RECORDS_MIN = 200_000
"""A task with less than this is not worth a file of its own."""
FULL_ENOUGH = 4
"""New records that fill one part in so many of a file begin one: to copy an old one first would cost more than that."""


class Refused(NamedTuple):
    """Why a topic can't be archived."""

    sentence: str
    is_loss: bool
    """The user may say that it does not matter."""


class Part(msgspec.Struct, frozen=True, array_like=True):
    """A range of offsets for a task."""

    partition: int
    from_offset: int
    end_offset: int


def starts_of(
    states: Mapping[str, TopicState], begins: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, int], list[Hole]]:
    """Where each partition goes on: where it was, or where its log begins if that is later."""
    starts: dict[TopicPartition, int] = {}
    holes = []
    for tp, begin in sorted(begins.items()):
        state = states.get(tp.topic)
        reach = None if state is None else state.partitions.get(tp.partition)
        starts[tp] = begin if reach is None else max(begin, reach.next_offset)
        if reach is not None and begin > reach.next_offset:
            holes.append(Hole(tp.partition, reach.next_offset, begin))
    return starts, holes


def refusals(
    states: Mapping[str, TopicState], cluster_id: str, begins: Mapping[TopicPartition, int], ends: Offsets, lake: str
) -> list[Refused]:
    """What speaks against going on with what the lake has."""
    found = []
    for topic, state in sorted(states.items()):
        topic_id = id_text(ends.topic_ids[topic]) if topic in ends.topic_ids else ""
        if cluster_id and state.cluster_id and cluster_id != state.cluster_id:
            found.append(
                Refused(
                    f"{lake} holds the topic {topic} of another cluster ({state.cluster_id}; this is {cluster_id}): "
                    "give each cluster a lake of its own",
                    False,
                )
            )
            continue
        if topic_id and state.topic_id and topic_id != state.topic_id:
            found.append(
                Refused(
                    f"topic {topic} was deleted and created again since it was archived in {lake}: its offsets mean "
                    "other records now, archive it to another lake",
                    False,
                )
            )
            continue
        found += _of_partitions(state, begins, ends)
    return found


def _of_partitions(state: TopicState, begins: Mapping[TopicPartition, int], ends: Offsets) -> Iterable[Refused]:
    for partition, reach in sorted(state.partitions.items()):
        tp = TopicPartition(state.topic, partition)
        end = ends.by_partition.get(tp)
        if end is not None and end < reach.next_offset:
            yield Refused(
                f"{tp} ends at offset {end} now, and was archived up to {reach.next_offset}: records were lost there, "
                "archive it to another lake",
                False,
            )
        elif begins.get(tp, 0) > reach.next_offset:
            yield Refused(
                f"offsets {reach.next_offset} to {begins[tp] - 1} of {tp} were deleted before they were archived", True
            )


def next_ends(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], records_max: int
) -> dict[TopicPartition, int]:
    """Where the next commit ends; the starts themselves when all is done."""
    return limit_in_proportion(starts, ends, records_max)


def parts_of(
    topic: str,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    tasks_max: int,
) -> list[list[Part]]:
    """The topic's work for each task, about the same for all."""
    ranges = [
        OffsetRange(tp, starts[tp], end) for tp, end in sorted(ends.items()) if tp.topic == topic and end > starts[tp]
    ]
    total = sum(one.size for one in ranges)
    tasks = max(1, min(tasks_max, math.ceil(total / TASK_RECORDS_MIN)))
    if not ranges:
        return []
    pieces = split(ranges, partitions_min=None, records_per_partition_max=max(1, math.ceil(total / tasks)))
    loads = [0] * tasks
    found: list[list[Part]] = [[] for _ in range(tasks)]
    for piece in sorted(pieces, key=lambda one: (-one.size, one.tp)):
        lightest = loads.index(min(loads))
        loads[lightest] += piece.size
        found[lightest].append(Part(piece.tp.partition, piece.from_offset, piece.end_offset))
    return [sorted(parts, key=lambda part: (part.partition, part.from_offset)) for parts in found if parts]


def growing_files(state: TopicState | None, task: int, new_records: int, file_size_bytes: int) -> dict[str, str]:
    """The file of each date that a task may grow: a small one that no other task has, the smallest for the first task.
    None for dates where the new records alone would fill a file."""
    if state is None:
        return {}
    small: dict[str, list[tuple[int, str]]] = {}
    for path, file in state.files.items():
        if file.size_bytes < file_size_bytes and not _is_filled(file, new_records, file_size_bytes):
            small.setdefault(date_of(path), []).append((file.size_bytes, path))
    return {date: sorted(files)[task][1] for date, files in small.items() if len(files) > task}


def _is_filled(file: LakeFile, new_records: int, file_size_bytes: int) -> bool:
    return new_records * file.size_bytes / max(1, file.records) >= file_size_bytes / FULL_ENOUGH


def reaches(
    state: TopicState | None,
    topic: str,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[int, Reach]:
    """After a commit."""
    found = {} if state is None else dict(state.partitions)
    for tp, end in sorted(ends.items()):
        if tp.topic == topic:
            known = found.get(tp.partition)
            found[tp.partition] = Reach(starts[tp] if known is None else known.first_offset, end)
    return found
