"""Finding records by their time: the time index leads to a batch, whose records are then looked at.

Where headers tell the truth one batch is looked into, and few are read. They need not, and timestamps may go back over
a whole segment: so walking over headers and looking into records takes place in turns (``looks``), off the loop.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple

from headpond.model import StorageFailed
from headpond.ports import Buffer, File, FileSystem
from headpond.protocol.records.compression import DECOMPRESSED_BYTES_MAX
from headpond.protocol.records.errors import CorruptBatch, DecompressedTooLarge
from headpond.protocol.records.header import HEADER_BYTES, BatchHeader, read_header
from headpond.protocol.records.search import TimestampOffset, first_at_or_after, latest
from headpond.storage.folder import names
from headpond.storage.log.lookup import FilesChanged, FoundBatch, Wanted, find_batch
from headpond.storage.log.segment import Segment, read_span
from headpond.storage.looks.looks import TURN_BYTES, TURN_RECORDS, Look, fits_a_turn

if TYPE_CHECKING:
    from headpond.storage.log.log import PartitionLog

WALK_BYTES = 65_536
"""Read at once while walking from header to header."""
TURN_READS = 16
"""In a turn: with the smallest batches that is as many headers as TURN_RECORDS, nearly."""


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class _Wish(NamedTuple):
    """What is looked for in a batch."""

    timestamp: int | None  # None: the latest
    from_offset: int = 0

    def look_into(self, batch: Buffer, size_bytes_max: int) -> TimestampOffset | None:
        if self.timestamp is None:
            return latest(batch, size_bytes_max=size_bytes_max)
        return first_at_or_after(batch, self.timestamp, from_offset=self.from_offset, size_bytes_max=size_bytes_max)


class _Turn(NamedTuple):
    """How far one came: ``found`` is it, else the batch at ``position`` has to be looked into ``at_length``, else the
    search goes on there."""

    position: int
    found: TimestampedOffset | None = None
    at_length: BatchHeader | None = None


async def first_at(log: PartitionLog, timestamp: int, up_to_end_offset: int, look: Look) -> TimestampedOffset | None:
    """The first record at or after ``timestamp``, in the order of the log: timestamps need not grow with the
    offsets."""
    wish = _Wish(timestamp, log.log_start_offset)
    for segment in list(log.segments):
        if segment.end_offset <= wish.from_offset or _largest(segment) < timestamp:
            continue
        position = await log.reads.drive(_start(segment, timestamp, wish.from_offset))
        found = await _search(log, segment, position, segment.size_bytes, wish, look)
        if found is not None:
            return found if found.offset < up_to_end_offset else None
    return None


async def largest(log: PartitionLog, up_to_end_offset: int, look: Look) -> TimestampedOffset | None:
    """The first record that has the largest timestamp of the files, as Kafka answers: also one that was deleted with
    others (DeleteRecords), as long as its segment is there."""
    best: Segment | None = None
    for segment in log.segments:
        if segment.size_bytes and (best is None or _largest(segment) > _largest(best)):
            best = segment
    if best is None:
        return None
    place = await log.reads.drive(_place(best, best.max_timestamp_offset))
    if place is None:
        return None
    found = await _search(log, best, place.position, place.position + place.size_bytes, _Wish(None), look)
    return found if found is not None and found.offset < up_to_end_offset else None


def _start(segment: Segment, timestamp: int, from_offset: int) -> Generator[Wanted, Buffer, int]:
    """Where the first batch lies that may be it."""
    yield segment, 0, 0
    assert segment.time_index is not None
    found = yield from find_batch(segment, max(segment.time_index.floor_offset(timestamp), from_offset))
    return found.position if found is not None else segment.size_bytes


def _place(segment: Segment, offset: int) -> Generator[Wanted, Buffer, FoundBatch | None]:
    return (yield from find_batch(segment, offset))


async def _search(
    log: PartitionLog, segment: Segment, position: int, end_position: int, wish: _Wish, look: Look
) -> TimestampedOffset | None:
    truncations = log.truncations
    while position < end_position:
        if segment.file is None:
            await log.reads.load(segment)
        assert segment.file is not None
        segment.pin()
        try:
            turn = await look.turn(_walk, segment.file, position, end_position, wish)
        except OSError as error:
            raise StorageFailed(message=f"reading {log.tp} failed: {error}") from error
        finally:
            segment.unpin()
        if turn.found is None and turn.at_length is not None:
            turn = await _look_at_length(log, segment, turn.position, turn.at_length, wish, look)
        if segment.is_gone or log.truncations != truncations:
            raise FilesChanged
        if turn.found is not None:
            return turn.found
        position = turn.position
    return None


async def _look_at_length(
    log: PartitionLog, segment: Segment, position: int, header: BatchHeader, wish: _Wish, look: Look
) -> _Turn:
    path = f"{log.path}/{names.file_name(segment.base_offset, names.LOG)}"
    try:
        turn = await look.at_length(look_at_length, path, position, header, wish)
    except OSError as error:
        if segment.is_gone:
            raise FilesChanged from None
        raise StorageFailed(message=f"reading {log.tp} failed: {error}") from error
    if turn is None:
        raise FilesChanged
    return turn


# --- blocking


def _walk(file: File, position: int, end_position: int, wish: _Wish) -> _Turn:
    """One turn."""
    records = 0
    for _ in range(TURN_READS):
        if position >= end_position:
            break
        chunk = file.read(position, min(WALK_BYTES, end_position - position))
        at = 0
        while len(chunk) - at >= HEADER_BYTES:
            size_bytes = read_span(chunk, at)[2]
            header = read_header(chunk, at)
            if _may_have_it(header, wish):
                if not fits_a_turn(header):
                    return _Turn(position + at, at_length=header)
                if records and records + header.count > TURN_RECORDS:
                    return _Turn(position + at)
                batch = chunk[at : at + size_bytes]
                if len(batch) < size_bytes:
                    batch = _read_whole(file, position + at, size_bytes)
                try:
                    found = wish.look_into(batch, TURN_BYTES)
                except DecompressedTooLarge:
                    return _Turn(position + at, at_length=header)
                if found is not None:
                    return _Turn(position + at, TimestampedOffset(*found, header.leader_epoch))
                records += header.count
            at += size_bytes
        if at == 0:
            raise CorruptBatch(f"the segment ends inside a batch header at {position}")
        position += at
    return _Turn(position)


def look_at_length(fs: FileSystem, path: str, position: int, header: BatchHeader, wish: _Wish) -> _Turn | None:
    """In a process: one batch. None: it is not there any more."""
    file = fs.open(path, writable=False)
    try:
        batch = file.read(position, header.size_bytes)
    finally:
        file.close()
    if len(batch) < header.size_bytes or read_header(batch) != header:
        return None
    found = wish.look_into(batch, DECOMPRESSED_BYTES_MAX)
    after = position + header.size_bytes
    return _Turn(after, None if found is None else TimestampedOffset(*found, header.leader_epoch))


def _may_have_it(header: BatchHeader, wish: _Wish) -> bool:
    return wish.timestamp is None or (header.max_timestamp >= wish.timestamp and header.last_offset >= wish.from_offset)


def _read_whole(file: File, position: int, size_bytes: int) -> bytes:
    batch = file.read(position, size_bytes)
    if len(batch) < size_bytes:
        raise CorruptBatch(f"the segment ends inside a batch at {position}")
    return batch


def _largest(segment: Segment) -> int:
    return -1 if segment.max_timestamp is None else segment.max_timestamp
