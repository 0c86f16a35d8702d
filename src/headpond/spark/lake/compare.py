"""Do two places hold the same records of a topic? Sums first, on executors; then the first record that differs.

By offset   What both sides could hold is compared: from the later of the two beginnings to the earlier of the two ends.
            What lies outside is told, and is no difference: retention, or an archive that is not as far yet.
By order    Everything: the first record of a partition with the first, and so on. For copies, whose offsets are new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from headpond.spark.lake.archive_plan import Part
from headpond.spark.lake.compare_task import (
    BLOCK,
    COLUMNS,
    Block,
    CompareAnswer,
    CompareWork,
    LakeSide,
    TopicSide,
    rows_of_side,
    sum_blocks,
)
from headpond.spark.lake.tasks import on_executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCATED_MAX = 10
"""Partitions in which the first difference is looked for."""

Bounds = Mapping[int, tuple[int, int]]
"""Partition -> (from offset, end offset)."""
Record = tuple[Any, ...]


class Difference(msgspec.Struct, frozen=True):
    partition: int
    place: int
    """The offset, or how many records of the partition come before it."""
    what: str


class Comparison(msgspec.Struct):
    other: str
    """What it was compared with."""
    by: str
    records: int = 0
    records_there: int = 0
    blocks: int = 0
    blocks_differing: int = 0
    only_here: int = 0
    """Offsets that were not compared, because the other side can't hold them."""
    only_there: int = 0
    partitions_missing: list[int] = []
    """That one side has, with records, and the other has not at all."""
    differences: list[Difference] = []
    """The first one of each partition."""

    @property
    def is_equal(self) -> bool:
        return not self.blocks_differing and not self.partitions_missing


class Side(msgspec.Struct):
    """One of the two; ``of_part`` says what a task is to read."""

    name: str
    bounds: dict[int, tuple[int, int]]
    of_part: Callable[[Part], TopicSide | LakeSide]


def compare(session: SparkSession, here: Side, there: Side, *, is_by_offset: bool) -> Comparison:
    result = Comparison(there.name, "offset" if is_by_offset else "order", partitions_missing=[], differences=[])
    here_parts, there_parts = _parts(here, there, result, is_by_offset=is_by_offset)
    works = [
        CompareWork(side.of_part(part), part, is_by_offset)
        for side, parts in ((here, here_parts), (there, there_parts))
        for part in parts
    ]
    answers = on_executors(session, sum_blocks, works, CompareAnswer)
    half = len(here_parts)
    for number, part in enumerate(here_parts):
        _compare_partition(
            result,
            part.partition,
            (works[number], answers[number].blocks),
            (works[half + number], answers[half + number].blocks),
        )
    return result


def _parts(here: Side, there: Side, result: Comparison, *, is_by_offset: bool) -> tuple[list[Part], list[Part]]:
    """What is read of each side: the same partitions in the same order."""
    here_parts, there_parts = [], []
    for partition in sorted({*here.bounds, *there.bounds}):
        mine, its = here.bounds.get(partition, (0, 0)), there.bounds.get(partition, (0, 0))
        if (partition not in here.bounds or partition not in there.bounds) and mine[1] - mine[0] + its[1] - its[0]:
            result.partitions_missing.append(partition)
            continue
        if is_by_offset:
            start = max(mine[0], its[0])
            end = max(start, min(mine[1], its[1]))
            result.only_here += mine[1] - mine[0] - max(0, min(mine[1], end) - start)
            result.only_there += its[1] - its[0] - max(0, min(its[1], end) - start)
            mine = its = (start, end)
        here_parts.append(Part(partition, *mine))
        there_parts.append(Part(partition, *its))
    return here_parts, there_parts


def _compare_partition(
    result: Comparison,
    partition: int,
    here: tuple[CompareWork, dict[int, Block]],
    there: tuple[CompareWork, dict[int, Block]],
) -> None:
    blocks, blocks_there = here[1], there[1]
    numbers = sorted({*blocks, *blocks_there})
    differing = [number for number in numbers if _content(blocks.get(number)) != _content(blocks_there.get(number))]
    result.blocks += len(numbers)
    result.blocks_differing += len(differing)
    result.records += sum(block.records for block in blocks.values())
    result.records_there += sum(block.records for block in blocks_there.values())
    if differing and len(result.differences) < LOCATED_MAX:
        number = differing[0]
        mine = _records(here[0], number, blocks.get(number))
        its = _records(there[0], number, blocks_there.get(number))
        place, what = first_difference(mine, its)
        result.differences.append(Difference(partition, place, what))


def _content(block: Block | None) -> tuple[int, int]:
    return (0, 0) if block is None else (block.records, block.total)


def _records(work: CompareWork, number: int, block: Block | None) -> dict[int, Record]:
    """The records of one block by their places."""
    if block is None:
        return {}
    part = Part(work.part.partition, block.from_offset, block.end_offset)
    found: list[Record] = []
    for rows in rows_of_side(work.side, part, COLUMNS):
        columns = [rows.column(name).to_pylist() for name in COLUMNS]
        found += zip(*columns, strict=True)
    found.sort(key=lambda record: record[COLUMNS.index("offset")])
    if work.is_by_offset:
        return {record[COLUMNS.index("offset")]: record for record in found}
    return {number * BLOCK + place: record for place, record in enumerate(found)}


def first_difference(here: Mapping[int, Record], there: Mapping[int, Record]) -> tuple[int, str]:
    """(place, what it is)."""
    for place in sorted({*here, *there}):
        mine, its = here.get(place), there.get(place)
        if its is None:
            return place, "is here and not there"
        if mine is None:
            return place, "is there and not here"
        for name, one, other in zip(COLUMNS, mine, its, strict=True):
            if name != "offset" and (one or None if name == "headers" else one) != (
                other or None if name == "headers" else other
            ):
                return place, f"has another {name}" if name != "headers" else "has other headers"
    return min({*here, *there}, default=0), "differs"
