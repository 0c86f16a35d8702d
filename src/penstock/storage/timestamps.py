"""Finding records by their time: the time index leads to a batch, whose records a worker then looks at."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple

from penstock.ports import Buffer
from penstock.protocol.records.header import HEADER_BYTES, read_header
from penstock.protocol.records.reader import read_records
from penstock.storage.reads import Wanted, find_batch
from penstock.storage.segment import Segment, read_span

if TYPE_CHECKING:
    from penstock.storage.log import PartitionLog

_WALK_BYTES = 65_536


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


async def first_at(log: PartitionLog, timestamp: int, up_to_end_offset: int) -> TimestampedOffset | None:
    """The first record at or after ``timestamp``, in the order of the log: timestamps need not grow with the
    offsets."""
    for segment in list(log.segments):
        if segment.end_offset <= log.log_start_offset or _largest(segment) < timestamp:
            continue
        from_offset = log.log_start_offset
        while (candidate := await log.reads.drive(_next_batch(segment, timestamp, from_offset))) is not None:
            batch, last_offset = candidate
            found = await log.ports.workers.run(_first_record, batch, timestamp, log.log_start_offset)
            if found is not None:
                return found if found.offset < up_to_end_offset else None
            from_offset = last_offset + 1
    return None


async def largest(log: PartitionLog, up_to_end_offset: int) -> TimestampedOffset | None:
    """The first record that has the log's largest timestamp."""
    best: Segment | None = None
    for segment in log.segments:
        if segment.size_bytes and (best is None or _largest(segment) > _largest(best)):
            best = segment
    if best is None or _largest(best) < 0:
        return None
    batch = await log.reads.drive(_batch_with(best, best.max_timestamp_offset))
    if batch is None:
        return None
    found = await log.ports.workers.run(_first_record, batch, read_header(batch).max_timestamp, log.log_start_offset)
    return found if found is not None and found.offset < up_to_end_offset else None


def _next_batch(
    segment: Segment, timestamp: int, from_offset: int
) -> Generator[Wanted, Buffer, tuple[Buffer, int] | None]:
    """The first batch, from the one that holds ``from_offset``, with a timestamp that is large enough; its last
    offset."""
    yield segment, 0, 0
    assert segment.time_index is not None
    found = yield from find_batch(segment, max(segment.time_index.floor_offset(timestamp), from_offset))
    position = found.position if found is not None else segment.size_bytes
    while position < segment.size_bytes:
        chunk = yield segment, position, min(_WALK_BYTES, segment.size_bytes - position)
        at = 0
        while len(chunk) - at >= HEADER_BYTES:
            _, last_offset, size_bytes = read_span(chunk, at)
            if read_header(chunk, at).max_timestamp >= timestamp:
                batch = yield segment, position + at, size_bytes
                return batch, last_offset
            at += size_bytes
        if at == 0:
            return None
        position += at
    return None


def _batch_with(segment: Segment, offset: int) -> Generator[Wanted, Buffer, Buffer | None]:
    found = yield from find_batch(segment, offset)
    if found is None:
        return None
    return (yield segment, found.position, found.size_bytes)


def _first_record(batch: Buffer, timestamp: int, from_offset: int) -> TimestampedOffset | None:
    for record in read_records(batch):
        if record.timestamp >= timestamp and record.offset >= from_offset:
            return TimestampedOffset(record.timestamp, record.offset, read_header(batch).leader_epoch)
    return None


def _largest(segment: Segment) -> int:
    return -1 if segment.max_timestamp is None else segment.max_timestamp
