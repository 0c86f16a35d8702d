"""A task of a comparison: the records of one side as sums of hashes, block by block.

A block is ``BLOCK`` places of a partition: offsets, or numbers in order. Its sum does not depend on the order in which
records are met, and changes with every record and its place. Two sides with equal sums hold the same records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from headpond.model import TopicPartition
from headpond.spark.lake.archive_plan import Part

if TYPE_CHECKING:
    import pyarrow as pa

    from headpond.spark.codec.jit import Numbers
    from headpond.spark.lake.audit_kernels import Hashes

BLOCK = 65_536
COLUMNS = ("key", "value", "headers", "offset", "timestamp")
HASH_SPAN = 1 << 64


class Block(msgspec.Struct, frozen=True, array_like=True):
    records: int
    total: int
    """Of the hashes, modulo 2**64."""
    from_offset: int
    end_offset: int


class TopicSide(msgspec.Struct, frozen=True, tag="topic"):
    source: dict[str, str]
    topic: str


class LakeSide(msgspec.Struct, frozen=True, tag="lake"):
    lake: str
    lake_id: str
    files: list[str]


class CompareWork(msgspec.Struct, frozen=True):
    side: TopicSide | LakeSide
    part: Part
    is_by_offset: bool


class CompareAnswer(msgspec.Struct, frozen=True):
    blocks: dict[int, Block]
    """By number: place // BLOCK."""


def sum_blocks(work: CompareWork) -> CompareAnswer:
    import numpy as np

    from headpond.spark.lake.record_hashes import hashes_of

    sums = _Sums()
    if work.is_by_offset:
        for rows in rows_of_side(work.side, work.part, COLUMNS):
            offsets = rows.column("offset").to_numpy(zero_copy_only=False)
            sums.add(hashes_of(rows), offsets, offsets)
    elif isinstance(work.side, TopicSide):
        position = 0
        for rows in rows_of_side(work.side, work.part, COLUMNS):
            offsets = rows.column("offset").to_numpy(zero_copy_only=False)
            sums.add(hashes_of(rows), np.arange(position, position + len(offsets)), offsets)
            position += len(offsets)
    else:  # files of a lake are in no order
        found = [
            (hashes_of(rows), rows.column("offset").to_numpy(zero_copy_only=False))
            for rows in rows_of_side(work.side, work.part, COLUMNS)
        ]
        if found:
            offsets = np.concatenate([one for _, one in found])
            order = np.argsort(offsets, kind="stable")
            sums.add(np.concatenate([one for one, _ in found])[order], np.arange(len(offsets)), offsets[order])
    return CompareAnswer(sums.blocks)


def rows_of_side(side: TopicSide | LakeSide, part: Part, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The rows of a part: of a topic in order, of a lake in none."""
    if isinstance(side, TopicSide):
        from headpond.spark.reading.options import parse_options
        from headpond.spark.reading.planning import OffsetRange
        from headpond.spark.reading.range_reader import read_range

        wanted = OffsetRange(TopicPartition(side.topic, part.partition), part.from_offset, part.end_offset)
        yield from read_range(parse_options(side.source, is_stream=False), wanted, None, columns)
        return
    import pyarrow.compute as pc

    from headpond.spark.lake.archive_task import check_lake
    from headpond.spark.lake.files import rows_of

    check_lake(side.lake, side.lake_id)
    for path in side.files:
        for rows in rows_of(side.lake, path, [*columns, "partition"]):
            offset = rows.column("offset")
            is_wanted = pc.and_(
                pc.equal(rows.column("partition"), part.partition),
                pc.and_(pc.greater_equal(offset, part.from_offset), pc.less(offset, part.end_offset)),
            )
            if (chosen := rows.filter(is_wanted)).num_rows:
                yield chosen


class _Sums:
    def __init__(self) -> None:
        self.blocks: dict[int, Block] = {}

    def add(self, hashes: Hashes, places: Numbers, offsets: Numbers) -> None:
        import numpy as np

        from headpond.spark.lake.audit_kernels import hash_places

        placed = np.empty(len(hashes), np.uint64)
        hash_places(hashes, np.ascontiguousarray(places, np.int64), placed)
        numbers = places // BLOCK
        for number in np.unique(numbers):
            chosen = numbers == number
            its_offsets = offsets[chosen]
            new = Block(
                int(np.count_nonzero(chosen)),
                int(placed[chosen].sum(dtype=np.uint64)),
                int(its_offsets.min()),
                int(its_offsets.max()) + 1,
            )
            self.blocks[int(number)] = joined(self.blocks.get(int(number)), new)


def joined(one: Block | None, other: Block) -> Block:
    if one is None:
        return other
    return Block(
        one.records + other.records,
        (one.total + other.total) % HASH_SPAN,
        min(one.from_offset, other.from_offset),
        max(one.end_offset, other.end_offset),
    )
