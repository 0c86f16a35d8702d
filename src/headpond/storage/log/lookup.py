"""How a read finds its bytes: one lookup, one read, whole batches only.

The steps are generators that *ask* for bytes, ``(segment, position, size)``, and are sent them: the loop answers from
memory and gives up when the device would have to be waited for; the cold path asks a worker. Asking for size 0 means:
open the file and have its index. All lookups so happen on the loop, whoever reads.

                 index entry ----.        .---- start: the batch that holds from_offset
    segment   [..batch][batch]..[batch][batch][batch][batch][batch].....
                                 walk -->     |<--- size_bytes_max --->|
                                                            ^ cut here: whole batches, all below up_to_end_offset
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from headpond.model import StorageFailed
from headpond.ports import Buffer, Part
from headpond.protocol.records.errors import CorruptBatch
from headpond.storage.log.segment import SPAN_BYTES, Segment, read_span

WALK_BYTES = 4_096
"""Read at once while walking from an index entry to the batch looked for: about the distance between entries."""
ENOUGH = 7 / 8
"""A cut that uses so much of the limit is taken; only below it are more headers looked for."""
LENT_FROM_BYTES = 65_536
"""Less than this is copied: lending has a price of its own, and small parts of a response are joined."""

Wanted = tuple[Segment, int, int]


class FilesChanged(Exception):
    """The log's files changed while a worker read: look again."""


class Read(NamedTuple):
    """Whole batches. The first may begin before the offset asked for; ``next_offset`` is where to read on."""

    data: Buffer
    next_offset: int


class Span(NamedTuple):
    """So many bytes of whole batches, and the offset behind them."""

    size_bytes: int
    next_offset: int


class Planned(NamedTuple):
    """Where whole batches lie. Good as long as the log's files do not change: to be carried out on the spot."""

    segment: Segment
    position: int
    size_bytes: int
    next_offset: int

    def read_nowait(self) -> Buffer | None:
        """The batches, if they are in memory."""
        file = self.segment.file
        data = file.read_nowait(self.position, self.size_bytes) if file is not None else None
        return data if data is not None and len(data) == self.size_bytes else None

    def take_nowait(self) -> Part | None:
        """The batches for a socket, if they are in memory; many of them are lent and must not be looked into."""
        if not self.size_bytes:
            return b""
        file = self.segment.file
        if self.size_bytes >= LENT_FROM_BYTES and file is not None:
            lent = file.lend_nowait(self.position, self.size_bytes)
            if lent is not None:
                return lent
        try:
            return self.read_nowait()
        except OSError as error:
            raise StorageFailed(message=f"reading {self.segment} failed: {error}") from error


NOTHING = Planned(Segment(0, created_ms=0), 0, 0, 0)
"""The plan where there is nothing to read."""


class FoundBatch(NamedTuple):
    position: int
    base_offset: int
    last_offset: int
    size_bytes: int


def find_batch(segment: Segment, offset: int) -> Generator[Wanted, Buffer, FoundBatch | None]:
    """The first batch whose last offset is at or behind ``offset``; None when the segment has none."""
    yield segment, 0, 0
    assert segment.index is not None
    position, named_offset = segment.index.floor(offset)
    while position < segment.size_bytes:
        chunk = yield segment, position, max(SPAN_BYTES, min(WALK_BYTES, segment.size_bytes - position))
        at = 0
        if named_offset is not None:
            # An older Kafka names the last of several batches that were appended together, and leads to the first.
            if span_in(segment, chunk, 0)[1] > named_offset:
                raise CorruptBatch(f"the index of {segment} leads to {position} for offset {named_offset}")
            named_offset = None
        while len(chunk) - at >= SPAN_BYTES:
            base_offset, last_offset, size_bytes = span_in(segment, chunk, at)
            if last_offset >= offset:
                found = FoundBatch(position + at, base_offset, last_offset, size_bytes)
                if base_offset > offset:
                    yield from _check_gap(segment, found)
                return found
            at += size_bytes
        if at == 0:
            raise CorruptBatch(f"{segment} ends inside a batch header at {position}")
        position += at
    return None


def span_in(segment: Segment, data: Buffer, at: int) -> tuple[int, int, int]:
    """(base offset, last offset, size in bytes) of the batch at ``at``; ``CorruptBatch`` if this segment can't hold
    it."""
    span = read_span(data, at)
    if span[0] < segment.base_offset or span[1] >= segment.end_offset:
        raise CorruptBatch(f"{segment} can't hold a batch with the offsets {span[0]} to {span[1]}")
    return span


def _check_gap(segment: Segment, found: FoundBatch) -> Generator[Wanted, Buffer, None]:
    """Compaction leaves gaps between batches; so does a base offset that rotted, which no CRC covers. The next batch
    tells."""
    following = found.position + found.size_bytes
    if following + SPAN_BYTES <= segment.size_bytes:
        head = yield segment, following, SPAN_BYTES
        if span_in(segment, head, 0)[0] <= found.last_offset:
            raise CorruptBatch(f"{segment} has a batch out of order at {found.position}")


def plan_batches(
    segment: Segment,
    position: int,
    *,
    end_position: int,
    from_offset: int,
    end_offset: int,
    size_bytes_max: int,
    at_least_one_batch: bool,
) -> Generator[Wanted, Buffer, Span]:
    """How far the whole batches from ``position`` on reach within the limits, from a few headers.
    ``end_position``: where ``end_offset`` lies in this segment, -1 if not known."""
    head = yield segment, position, max(SPAN_BYTES, min(WALK_BYTES, segment.size_bytes - position))
    _, first_last_offset, first_bytes = span_in(segment, head, 0)
    if first_last_offset < from_offset or position + first_bytes > segment.size_bytes:
        raise CorruptBatch(f"{segment} has another batch at {position} than the one with {from_offset}")
    if first_last_offset >= end_offset:
        return Span(0, from_offset)
    if end_position >= 0 and end_position - position <= size_bytes_max:
        return Span(end_position - position, min(end_offset, segment.end_offset))
    if first_bytes > size_bytes_max:
        return Span(first_bytes, first_last_offset + 1) if at_least_one_batch else Span(0, from_offset)
    limit = min(segment.size_bytes, position + size_bytes_max)
    return (yield from _walk_to_cut(segment, position, head, limit, from_offset, end_offset))


def _walk_to_cut(
    segment: Segment, position: int, head: Buffer, limit: int, from_offset: int, end_offset: int
) -> Generator[Wanted, Buffer, Span]:
    """``head``: what was read at ``position`` already."""
    at = max(position, _indexed_before(segment, limit, end_offset))
    next_offset = from_offset
    chunk, chunk_at = head, position
    while at + SPAN_BYTES <= limit:
        if at + SPAN_BYTES > chunk_at + len(chunk):
            if next_offset > from_offset and at - position >= ENOUGH * (limit - position):
                break
            chunk_at = at
            chunk = yield segment, at, min(WALK_BYTES, limit - at)
        at, next_offset, is_cut = _walk(segment, chunk, chunk_at, at, next_offset, limit, end_offset)
        if is_cut:
            break
    if next_offset <= from_offset:
        raise CorruptBatch(f"the index of {segment} points at {at}, where no batch of its lies")
    return Span(at - position, next_offset)


def cut_now(segment: Segment, position: int, from_offset: int, end_offset: int, size_bytes_max: int) -> Span | None:
    """What ``plan_batches`` finds in the usual case, at once: the first batch is at ``position``, a header or two near
    the limit are in memory, and enough lies before them. None: take the steps."""
    file = segment.file
    if file is None or segment.index is None:
        return None
    limit = min(segment.size_bytes, position + size_bytes_max)
    head = file.read_nowait(position, SPAN_BYTES)
    if head is None or len(head) < SPAN_BYTES:
        return None
    _, last_offset, batch_bytes = span_in(segment, head, 0)
    at, next_offset = position + batch_bytes, last_offset + 1
    if next_offset <= from_offset or next_offset > end_offset or at > limit:
        return None
    enough = position + ENOUGH * (limit - position)
    if at < enough:
        walk_from = max(at, _indexed_before(segment, limit, end_offset))
        chunk = file.read_nowait(walk_from, min(WALK_BYTES, limit - walk_from))
        if chunk is None:
            return None
        at, next_offset, _ = _walk(segment, chunk, walk_from, walk_from, -1, limit, end_offset)
        if at < enough or next_offset < 0:
            return None
    return Span(at - position, next_offset)


def _indexed_before(segment: Segment, limit: int, end_offset: int) -> int:
    """Where a walk to the cut starts: an indexed batch near it that is known to be wholly below both limits, so that a
    megabyte of tiny batches costs no more than a few headers."""
    assert segment.index is not None
    index = segment.index
    at = index.whole_batch_before(limit)
    return at if end_offset >= segment.end_offset else min(at, index.floor(end_offset - 1)[0])


def _walk(
    segment: Segment, chunk: Buffer, chunk_at: int, at: int, next_offset: int, limit: int, end_offset: int
) -> tuple[int, int, bool]:
    """From header to header as far as the chunk and the limits go: where that is, the offset there, and whether a limit
    was met."""
    headers_end = min(limit, chunk_at + len(chunk)) - SPAN_BYTES
    while at <= headers_end:
        _, last_offset, batch_bytes = span_in(segment, chunk, at - chunk_at)
        if last_offset >= end_offset or at + batch_bytes > limit:
            return at, next_offset, True
        next_offset = last_offset + 1
        at += batch_bytes
    return at, next_offset, False


def check_first(segment: Segment, position: int, data: Buffer, from_offset: int) -> None:
    """``data`` begins with the batch that holds ``from_offset``, or ``CorruptBatch``."""
    _, last_offset, size_bytes = span_in(segment, data, 0)
    if last_offset < from_offset or size_bytes > len(data):
        raise CorruptBatch(f"{segment} has another batch at {position} than the one with {from_offset}")
