"""Fetched batches made ready for the scan: decompressed, and grouped so that one call of a compiled loop does many.

Uncompressed batches stay where the fetch left them. Compressed ones are unpacked one behind the other, each behind its
header, into an arena that is used again for the next section: memory that is warm, and no larger than a chunk and the
largest batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from headpond.client.fetched import FetchedBatch, corrupt
from headpond.model import TopicPartition
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import CODEC_MASK
from headpond.spark.codec.arena import Arena
from headpond.spark.codec.jit import Bytes, Numbers

NO_END_OFFSET = 2**63 - 1
SECTION_BATCHES_MAX = 4_096
"""How much is prepared before the first row comes out."""


class Section(NamedTuple):
    """Batches of one partition, of one range of offsets, in one piece of memory."""

    tp: TopicPartition
    from_offset: int
    end_offset: int
    data: Bytes
    table: Numbers
    """Start and end of each batch, its header included."""


def sections_of(batches: Iterable[FetchedBatch], section_bytes: int) -> Iterator[Section]:
    """A section is valid until the next one is asked for. Raises ``ClientError`` with CORRUPT_MESSAGE."""
    arena = Arena(section_bytes)
    first: FetchedBatch | None = None  # of the section that is being gathered
    is_packed = False
    bounds: list[tuple[int, int]] = []
    for batch in batches:
        codec = batch.header.attributes & CODEC_MASK
        if first is not None and not (
            is_packed == (codec != 0)
            and (arena.used_bytes < section_bytes if is_packed else batch.fetched is first.fetched)
            and batch.tp == first.tp
            and batch.from_offset == first.from_offset
            and batch.end_offset == first.end_offset
            and len(bounds) < SECTION_BATCHES_MAX
        ):
            yield _section(first, is_packed, arena, bounds)
            first = None
        if first is None:
            first, is_packed, bounds = batch, codec != 0, []
            arena.clear()
        if not is_packed:
            bounds.append((batch.position, batch.position + len(batch.data)))
            continue
        try:
            placed = arena.unpack(codec, batch.data)
            if placed is None:  # there is not enough room behind the others
                if bounds:
                    yield _section(first, is_packed, arena, bounds)
                first, bounds = batch, []
                placed = arena.unpack_alone(codec, batch.data)
        except CorruptBatch as error:
            raise corrupt(batch.tp, batch.header.base_offset, str(error)) from error
        bounds.append(placed)
    if first is not None:
        yield _section(first, is_packed, arena, bounds)


def _section(first: FetchedBatch, is_packed: bool, arena: Arena, bounds: list[tuple[int, int]]) -> Section:
    return Section(
        first.tp,
        first.from_offset,
        NO_END_OFFSET if first.end_offset is None else first.end_offset,
        arena.memory if is_packed else np.frombuffer(first.fetched, np.uint8),
        np.array(bounds, np.int64),
    )
