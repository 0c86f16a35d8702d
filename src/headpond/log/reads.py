"""Reading, on the thread of whoever reads: no other thread is asked for what is in memory.

A read finds its first batch through the index (``storage.log.lookup``, as the broker does) and then goes from batch to
batch. What the page cache does not hold, a segment that is not open, and an index that leads astray are left to the
loop and its workers. Each batch's checksum is compared before anything of it is handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any, NamedTuple, TypeVar

from headpond.log.batch import RawBatch
from headpond.log.errors import CorruptRecord, OffsetOutOfRange, ReadFailed
from headpond.log.visible import Still, View, Visible
from headpond.ports import Buffer
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import crc_of, read_header
from headpond.storage.log.log import PartitionLog
from headpond.storage.log.lookup import FoundBatch, Wanted, find_batch, span_in
from headpond.storage.log.segment import SPAN_BYTES

T = TypeVar("T")

READ_BYTES = 256 * 1024
"""At once, after the first batch."""
STILLS_MAX = 16
"""Finished segments that readers keep open: their indexes may take 5 MiB each."""
ATTEMPTS_MAX = 8
"""A look for a batch begins again when segments were replaced meanwhile."""


class Place(NamedTuple):
    still: Still
    found: FoundBatch


class Loop(NamedTuple):
    """What is left to the loop; both wait."""

    call: Callable[[Coroutine[Any, Any, Any]], Any]
    read_file: Callable[[Still, int, int], Coroutine[Any, Any, Buffer]]
    rebuild: Callable[[int, int], Coroutine[Any, Any, None]]  # raises ``CorruptBatch`` if it is not the index


class Reads:
    def __init__(self, log: PartitionLog, visible: Visible, loop: Loop, check_open: Callable[[], None]) -> None:
        self._log = log
        self._visible = visible
        self._loop = loop
        self._check_open = check_open
        self._stills: dict[int, Still] = {}  # of the segments of ``_bases``, the longest unused first
        self._bases: list[int] = []

    def view(self) -> View:
        self._check_open()
        view = self._visible.view
        if self._log.segments.base_offsets is not view.base_offsets:
            self._loop.call(_now(self._visible.refresh))
            view = self._visible.view
        return view

    def batches(self, from_offset: int, end_offset: int) -> Iterator[RawBatch]:
        """From the one that holds ``from_offset`` to the last that begins below ``end_offset``. Raises
        ``CorruptRecord``, ``OffsetOutOfRange`` (retention was quicker), ``ReadFailed``, ``LogClosed``."""
        offset = from_offset
        while offset < end_offset:
            place = self._locate(offset)
            if place is None:
                return
            still, found = place
            for batch in self._in_one(still, found, offset):
                if batch.base_offset >= end_offset:
                    return
                yield batch
                offset = batch.last_offset + 1
                if offset >= end_offset:
                    return
                self._check_open()
            offset = max(offset, still.end_offset)

    def _in_one(self, still: Still, found: FoundBatch, offset: int) -> Iterator[RawBatch]:
        """All of a segment, from the batch that was found on."""
        position, wanted_bytes = found.position, found.size_bytes
        while position < still.size_bytes:
            data = self._read(still, position, min(wanted_bytes, still.size_bytes - position), offset)
            at, wanted_bytes = 0, READ_BYTES
            while len(data) - at >= SPAN_BYTES:
                try:
                    base_offset, last_offset, size_bytes = span_in(still, data, at)
                except CorruptBatch as error:
                    raise CorruptRecord(offset, still.end_offset, str(error)) from None
                if base_offset < offset and position + at != found.position:  # which no checksum covers
                    raise CorruptRecord(offset, still.end_offset, f"it claims the offset {base_offset}")
                if size_bytes > len(data) - at:
                    wanted_bytes = max(READ_BYTES, size_bytes)
                    break
                batch = data[at : at + size_bytes]
                header = read_header(batch)
                if crc_of(batch) != header.crc:
                    raise CorruptRecord(header.base_offset, last_offset + 1, "its checksum does not fit")
                yield RawBatch(header, batch)
                offset = last_offset + 1
                at += size_bytes
            if at == 0 and len(data) >= min(wanted_bytes, still.size_bytes - position):
                raise CorruptRecord(offset, still.end_offset, "it is longer than what is left of its segment")
            position += at

    # --- finding ------------------------------------------------------------------------------------------------------

    def _locate(self, offset: int) -> Place | None:
        """The first batch that reaches ``offset``; None: there is none that can be read."""
        is_rebuilt = False
        for _ in range(ATTEMPTS_MAX):
            view = self.view()
            if offset < view.start_offset:
                raise OffsetOutOfRange(offset, view.start_offset, view.end_offset)
            try:
                for slot in range(view.slot_of(offset), view.readable):
                    still = self._still(view, slot)
                    if still is None:
                        break
                    found = self._drive(still, find_batch(still, offset), offset)
                    if found is not None:
                        return Place(still, found)
                else:
                    return None
            except CorruptBatch as error:
                end_offset = still.end_offset if still is not None else offset + 1
                if is_rebuilt:
                    raise CorruptRecord(offset, end_offset, str(error)) from None
                self._rebuild(offset, view.end_offset, end_offset)
                is_rebuilt = True
        raise ReadFailed(f"the log kept changing under a read at offset {offset}")

    def _still(self, view: View, slot: int) -> Still | None:
        if slot == view.readable - 1:
            return view.tail
        base = view.base_offsets[slot]
        stills = self._stills
        if self._bases is not view.base_offsets:
            stills = self._stills = {}  # a new one: another thread may be at work on the old one
            self._bases = view.base_offsets
        still = stills.get(base)
        if still is None:
            still = self._loop.call(self._visible.still(view, slot))
            if still is not None:
                stills[base] = still
                while len(stills) > STILLS_MAX:
                    stills.pop(next(iter(list(stills))), None)
        return still

    def _drive(self, still: Still, steps: Generator[Wanted, Buffer, T], offset: int) -> T:
        """Give the steps what they ask for."""
        try:
            _, position, size = next(steps)
            while True:
                _, position, size = steps.send(self._read(still, position, size, offset) if size else b"")
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _read(self, still: Still, position: int, size: int, offset: int) -> memoryview:
        assert still.file is not None
        try:
            data = still.file.read_nowait(position, size)
            if data is None or len(data) < size:
                data = self._loop.call(self._loop.read_file(still, position, size))
        except OSError as error:
            raise ReadFailed(f"offset {offset} could not be read: {error}") from error
        if len(data) < size:
            raise CorruptRecord(offset, still.end_offset, "its segment's file is shorter than it was")
        return memoryview(data)

    def _rebuild(self, offset: int, view_end_offset: int, next_offset: int) -> None:
        """No batch lies where the index says: it is the index, or the log."""
        try:
            self._loop.call(self._loop.rebuild(offset, view_end_offset))
        except CorruptBatch as error:
            raise CorruptRecord(offset, next_offset, str(error)) from None
        self._stills = {}  # with the index that led astray


async def _now(work: Callable[[], None]) -> None:
    work()
