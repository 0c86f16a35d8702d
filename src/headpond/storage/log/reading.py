"""Reading one log: from memory on the loop when it can be had there, else through a worker.

``read`` costs one lookup and one read however long the log is. Where recent reads ended is remembered, so that a
consumer that reads on needs no lookup at all. Bytes above ``up_to_end_offset`` never leave; a batch whose header
makes no sense raises CORRUPT_MESSAGE and is not served (an index that led there is rebuilt first: it may be the index
that is wrong).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, TypeVar

from headpond.model import BrokerError, ErrorCode, OffsetOutOfRange, StorageFailed, invariant
from headpond.ports import Buffer, File, FileSystem
from headpond.protocol.records.errors import CorruptBatch
from headpond.storage.folder import names
from headpond.storage.log import timestamps
from headpond.storage.log.lookup import (
    NOTHING,
    FilesChanged,
    Planned,
    Read,
    Span,
    Wanted,
    check_first,
    cut_now,
    find_batch,
    plan_batches,
)
from headpond.storage.log.segment import Segment
from headpond.storage.log.timestamps import TimestampedOffset
from headpond.storage.looks.looks import Look
from headpond.storage.recovery import index_files
from headpond.storage.recovery.scan import ScannedSegment

if TYPE_CHECKING:
    from headpond.storage.log.log import PartitionLog

T = TypeVar("T")

SPOTS_MAX = 64
"""Positions remembered per log: as many consumers may read on from different places without a lookup."""
FINISHED_SEGMENTS_LOADED_MAX = 8
"""Finished segments of one log whose files are open and whose indexes are in memory (at most 5 MiB each)."""
ATTEMPTS_MAX = 5
"""A cold read starts again when the log's files changed under it."""


class Misread(Exception):
    """No batch lies where the index of ``segment`` or the batches before it say."""

    def __init__(self, segment: Segment, message: str) -> None:
        super().__init__(message)
        self.segment = segment


class LogReads:
    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self._spots: dict[int, tuple[Segment, int]] = {}  # offset -> the batch that begins with it
        self._loaded: dict[Segment, None] = {}  # finished and loaded, the longest unused first
        self._changes = 0
        self._held: asyncio.Event | None = None  # files are being renamed: open none by its name

    # --- batches ------------------------------------------------------------------------------------------------------

    def plan(
        self, from_offset: int, *, up_to_end_offset: int, size_bytes_max: int, at_least_one_batch: bool
    ) -> Planned | None:
        """The place and size of whole batches from the one that holds ``from_offset``, all below ``up_to_end_offset``;
        of at least one of them, if asked for, even beyond ``size_bytes_max``. None: the device has to be waited for,
        use ``read_cold``."""
        log = self._log
        end_offset = self._end_of(from_offset, up_to_end_offset)
        if from_offset >= end_offset:
            return NOTHING
        try:
            spot = self._spots.get(from_offset)
            if spot is not None:
                segment, position = spot
                size = self._position_of(end_offset, segment) - position
                span = None
                if 0 < size <= size_bytes_max and segment.file is not None:
                    # A consumer that has read everything but the newest, which is the usual one.
                    span = Span(size, min(end_offset, segment.end_offset))
                elif size:
                    span = cut_now(segment, position, from_offset, end_offset, size_bytes_max)
                if span is not None:
                    planned = Planned(segment, position, *span)
                    self._planned(planned)
                    return planned
            return self._drive_now(self._steps(from_offset, end_offset, size_bytes_max, at_least_one_batch))
        except CorruptBatch:
            return None  # the cold path finds out whether it is the index or the log
        except OSError as error:
            raise StorageFailed(message=f"reading {log.tp} failed: {error}") from error

    async def read_cold(
        self, from_offset: int, *, up_to_end_offset: int, size_bytes_max: int, at_least_one_batch: bool
    ) -> Read:
        """The batches themselves, waiting for the device."""

        def steps() -> Generator[Wanted, Buffer, Read]:
            end_offset = self._end_of(from_offset, up_to_end_offset)
            if from_offset >= end_offset:
                return Read(b"", from_offset)
            planned = yield from self._steps(from_offset, end_offset, size_bytes_max, at_least_one_batch)
            if planned.size_bytes == 0:
                return Read(b"", from_offset)
            data = yield planned.segment, planned.position, planned.size_bytes
            check_first(planned.segment, planned.position, data, from_offset)
            return Read(data, planned.next_offset)

        return await self._attempt(lambda: self.drive(steps()))

    async def _attempt(self, read: Callable[[], Awaitable[T]]) -> T:
        """Read until the files stood still meanwhile, and with an index made anew if the present one led astray."""
        rebuilt: Segment | None = None
        for _ in range(ATTEMPTS_MAX):
            try:
                return await read()
            except FilesChanged:
                continue
            except Misread as error:
                if error.segment is rebuilt or not await self._rebuild_index(error.segment):
                    raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{self._log.tp}: {error}") from error
                rebuilt = error.segment
            except CorruptBatch as error:
                raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{self._log.tp}: {error}") from error
        raise StorageFailed(message=f"{self._log.tp} kept changing under a read")

    def _end_of(self, from_offset: int, up_to_end_offset: int) -> int:
        log = self._log
        if from_offset < log.log_start_offset or from_offset > log.log_end_offset:
            raise OffsetOutOfRange(
                message=f"offset {from_offset} is outside of {log.tp}, {log.log_start_offset} to {log.log_end_offset}"
            )
        return min(up_to_end_offset, log.log_end_offset)

    def _steps(
        self, from_offset: int, end_offset: int, size_bytes_max: int, at_least_one_batch: bool
    ) -> Generator[Wanted, Buffer, Planned]:
        log = self._log
        spot = self._spots.get(from_offset)
        if spot is not None and spot[1] < spot[0].size_bytes:
            segment, position = spot
            yield segment, 0, 0
        else:
            segment = log.segments.holding(from_offset)
            while True:
                found = yield from find_batch(segment, from_offset)
                if found is not None:
                    break
                following = log.segments.after(segment)  # compaction may leave a gap at a segment's end
                if following is None or following.base_offset >= end_offset:
                    return NOTHING
                segment = following
            position = found.position
        span = yield from plan_batches(
            segment,
            position,
            end_position=self._position_of(end_offset, segment),
            from_offset=from_offset,
            end_offset=end_offset,
            size_bytes_max=size_bytes_max,
            at_least_one_batch=at_least_one_batch,
        )
        planned = Planned(segment, position, span.size_bytes, span.next_offset)
        self._planned(planned)
        return planned

    def _planned(self, planned: Planned) -> None:
        """Remember where the next read will go on."""
        if planned.size_bytes:
            self._remember(planned.next_offset, planned.segment, planned.position + planned.size_bytes)
        if planned.segment is not self._log.active:
            self._touch(planned.segment)

    def _position_of(self, end_offset: int, segment: Segment) -> int:
        if end_offset >= segment.end_offset:
            return segment.size_bytes
        log = self._log
        if end_offset == log.flushed_end_offset and segment is log.flushed_segment:
            return log.flushed_segment_bytes  # where most reads have to stop
        spot = self._spots.get(end_offset)
        return spot[1] if spot is not None and spot[0] is segment else -1

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        spots = self._spots
        spots.pop(offset, None)
        spots[offset] = (segment, position)
        if len(spots) > SPOTS_MAX:
            del spots[next(iter(spots))]

    # --- timestamps ---------------------------------------------------------------------------------------------------

    async def offset_for_timestamp(
        self, timestamp: int, *, up_to_end_offset: int, look: Look | None = None
    ) -> TimestampedOffset | None:
        """The first record with that timestamp or a later one, below ``up_to_end_offset``. ``look``: of the request."""
        look = look or self._log.ports.looks.begin(None)
        await self._attempt(lambda: self._load_timestamps(look))
        return await self._attempt(lambda: timestamps.first_at(self._log, timestamp, up_to_end_offset, look))

    async def max_timestamp(self, *, up_to_end_offset: int, look: Look | None = None) -> TimestampedOffset | None:
        """The first record with the largest timestamp of the log; None if it is not below ``up_to_end_offset``."""
        look = look or self._log.ports.looks.begin(None)
        await self._attempt(lambda: self._load_timestamps(look))
        return await self._attempt(lambda: timestamps.largest(self._log, up_to_end_offset, look))

    async def _load_timestamps(self, look: Look) -> None:
        """Have the largest timestamp of every segment in memory. Raises ``LookGivenUp``."""
        for segment in list(self._log.segments):
            if segment.max_timestamp is None:
                look.go_on()
                await self.load(segment)

    # --- files --------------------------------------------------------------------------------------------------------

    def _drive_now(self, steps: Generator[Wanted, Buffer, T]) -> T | None:
        """Give the steps what they ask for, if it is all in memory."""
        try:
            segment, position, size = next(steps)
            while True:
                if segment.file is None or segment.index is None:
                    return None
                data = segment.file.read_nowait(position, size) if size else b""
                if data is None or len(data) < size:
                    return None
                segment, position, size = steps.send(data)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def drive(self, steps: Generator[Wanted, Buffer, T]) -> T:
        """Give the steps what they ask for, from memory or through a worker."""
        changes = self._changes
        segment: Segment | None = None
        try:
            segment, position, size = next(steps)
            while True:
                if segment.file is None or segment.index is None:
                    await self.load(segment)
                data = await self._read_file(segment, position, size) if size else b""
                if changes != self._changes:
                    raise FilesChanged
                if len(data) < size:
                    raise CorruptBatch(f"{segment} ends before position {position + size}")
                segment, position, size = steps.send(data)
        except StopIteration as stop:
            result: T = stop.value
            return result
        except CorruptBatch as error:
            if segment is None:
                raise
            raise Misread(segment, str(error)) from error

    async def _read_file(self, segment: Segment, position: int, size: int) -> Buffer:
        file = segment.file
        if file is None:
            raise FilesChanged
        data = file.read_nowait(position, size)
        if data is not None and len(data) == size:
            return data
        segment.pin()
        try:
            return await self._log.ports.workers.run(file.read, position, size)
        except OSError as error:
            raise StorageFailed(message=f"reading {self._log.tp} failed: {error}") from error
        finally:
            segment.unpin()

    async def load(self, segment: Segment) -> None:
        """Open a finished segment and load its indexes, as far as that is not done. Indexes that are in memory count:
        their files may lack entries until a checkpoint has written them."""
        if segment.file is not None and segment.index is not None and segment.time_index is not None:
            return
        if self._held is not None:
            await self._held.wait()
            raise FilesChanged  # this segment may be one of those that are gone now
        if segment.is_gone:
            raise FilesChanged
        log = self._log
        changes = self._changes
        is_indexed = segment.index is not None
        invariant(is_indexed or segment not in log.unsaved, "indexes that are on no disk were let go", log, segment)
        try:
            file, scanned = await log.ports.workers.run(
                load_segment,
                log.ports.fs,
                log.path,
                segment.base_offset,
                segment.size_bytes,
                segment.end_offset,
                None if is_indexed else log.config.index_interval_bytes,
            )
        except OSError as error:
            if changes != self._changes:
                raise FilesChanged from None
            raise StorageFailed(message=f"opening {log.tp} failed: {error}") from error
        if changes != self._changes or segment.file is not None:
            file.close()
            if segment.file is None or segment.index is None:
                raise FilesChanged
            return
        segment.file = file
        if segment.index is None and scanned is not None:
            self._take(segment, scanned)
        self._touch(segment)

    async def _rebuild_index(self, segment: Segment) -> bool:
        """The index may have led astray: make it anew from the batches. False: it can't be the index."""
        log = self._log
        if segment is log.active or segment.file is None:
            return False
        segment.pin()
        try:
            rebuilt = await log.ports.workers.run(
                index_files.rebuild_indexes,
                segment.file,
                segment.base_offset,
                segment.size_bytes,
                log.config.index_interval_bytes,
            )
        except OSError as error:
            raise StorageFailed(message=f"reading {log.tp} failed: {error}") from error
        finally:
            segment.unpin()
        if not segment.is_gone:  # else look again: another may have its name, and must not get its indexes
            self._take(segment, rebuilt)
        return True

    def _take(self, segment: Segment, scanned: ScannedSegment) -> None:
        """The indexes of a finished segment; the next checkpoint writes what the files lack."""
        log = self._log
        segment.index, segment.time_index = scanned.index, scanned.time_index
        segment.max_timestamp, segment.max_timestamp_offset = scanned.max_timestamp, scanned.max_timestamp_offset
        segment.is_damaged = scanned.fault is not None
        segment.note_index_files(scanned)
        if segment.has_unwritten_entries() and segment not in log.unsaved:
            log.unsaved.append(segment)
            log.ports.on_changed(log)

    def _touch(self, segment: Segment) -> None:
        """A finished segment was used: keep it loaded, and let go of the one that was not for longest."""
        loaded = self._loaded
        loaded.pop(segment, None)
        loaded[segment] = None
        if len(loaded) > FINISHED_SEGMENTS_LOADED_MAX:
            for oldest in loaded:
                if oldest is not segment and self._may_unload(oldest):
                    del loaded[oldest]
                    oldest.unload()
                    return

    def _may_unload(self, segment: Segment) -> bool:
        log = self._log
        if segment is log.active:  # a cut made it that again
            return False
        return not (segment.pins or segment.unsynced or segment in log.unsaved or segment in log.journaled)

    def finished(self, segment: Segment) -> None:
        """``segment`` is no longer the active one."""
        self._touch(segment)

    def hold_files(self) -> None:
        """Finished segments are about to be replaced: what is open stays in use, nothing else is opened meanwhile."""
        self._held = asyncio.Event()
        self._changes += 1  # whoever opens one just now looks again

    def release_files(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.set()

    def changed(self, gone: list[Segment]) -> None:
        """The files changed: what was remembered about positions may be wrong."""
        self._changes += 1
        self._spots.clear()
        self._log.flushed_segment = None
        for segment in gone:
            self._loaded.pop(segment, None)
            segment.is_gone = True
            if segment.pins == 0:
                segment.unload()


def load_segment(
    fs: FileSystem, path: str, base_offset: int, size_bytes: int, end_offset: int, interval_bytes: int | None
) -> tuple[File, ScannedSegment | None]:
    """Blocking: open a finished segment and, unless ``interval_bytes`` is None, load its indexes."""
    file = fs.open(f"{path}/{names.file_name(base_offset, names.LOG)}", writable=False)
    try:
        if interval_bytes is None:
            return file, None
        return file, index_files.load_indexes(fs, path, file, base_offset, size_bytes, end_offset, interval_bytes)
    except BaseException:
        file.close()
        raise
