"""How far the log can be read, as readers on other threads see it: a ``View``, replaced as a whole.

The loop makes views; readers take the newest and keep it as long as they like. What a view shows never changes: bytes
below its end are never written again, and the files behind it stay open (their segments are pinned) until the last
reader has let go, whatever compaction and retention do meanwhile.

    view:  start_offset ... [finished] [finished] [tail, up to end_offset] | not visible yet
                                └ opened by the loop when a reader first needs it (``still``)

A crash: nothing here is on disk.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from headpond.log.errors import ReadFailed
from headpond.model import StorageFailed, invariant
from headpond.runtime.handover import Returns
from headpond.storage.log.log import PartitionLog
from headpond.storage.log.lookup import FilesChanged
from headpond.storage.log.segment import Segment


class Pin:
    """Keeps a segment's file open and its index in memory for as long as somebody refers to this."""

    __slots__ = ("_let_go", "segment")

    def __init__(self, segment: Segment, let_go: Callable[[Segment], None]) -> None:
        """On the loop."""
        self.segment = segment
        self._let_go = let_go
        segment.pin()

    def __del__(self) -> None:
        self._let_go(self.segment)


class Still(Segment):
    """A segment as a view shows it."""

    __slots__ = ("pin_held",)

    def __init__(self, pin: Pin, size_bytes: int, end_offset: int) -> None:
        of = pin.segment
        super().__init__(of.base_offset, created_ms=of.created_ms)
        self.pin_held = pin
        self.file, self.index = of.file, of.index
        self.size_bytes, self.end_offset = size_bytes, end_offset


class View(NamedTuple):
    start_offset: int
    end_offset: int
    base_offsets: list[int]  # the log's own list: another one takes its place when segments are replaced or removed
    readable: int  # of these, the segments that can be read; the list itself may grow
    tail: Still | None  # the last of them; None: the log is empty and has no files yet

    def slot_of(self, offset: int) -> int:
        return max(0, bisect_right(self.base_offsets, offset, 0, self.readable) - 1)


class Visible:
    def __init__(self, log: PartitionLog, call_soon: Callable[[Callable[[], None]], None]) -> None:
        self._log = log
        self._unpinned: Returns[Segment] = Returns(call_soon, Segment.unpin)
        self._tail_pin: Pin | None = None
        self.on_change: Callable[[], None] = lambda: None
        self.view = View(0, 0, [], 0, None)
        log.on_log_start = lambda _: self.refresh()
        end = log.active.size_bytes if log.active is not None else 0
        self.show(log.log_end_offset, log.active, end)

    def show(self, end_offset: int, segment: Segment | None, end_bytes: int) -> None:
        """Everything below ``end_offset`` can be read; it lies in ``segment``, and ends there at ``end_bytes``."""
        tail = None
        if segment is not None:
            if self._tail_pin is None or self._tail_pin.segment is not segment:
                self._tail_pin = Pin(segment, self._unpinned.put)
            tail = Still(self._tail_pin, end_bytes, end_offset)
        bases = self._log.segments.base_offsets
        count = 0 if segment is None else bisect_right(bases, segment.base_offset)
        self.view = View(self._log.log_start_offset, end_offset, bases, count, tail)
        self.on_change()

    def refresh(self) -> None:
        """The log's start or its files are others than those of the view."""
        end_offset, log, tail = self.view.end_offset, self._log, self.view.tail
        if log.active is None:
            self.show(end_offset, None, 0)
            return
        segment = log.segments.holding(end_offset)
        if tail is not None and tail.pin_held.segment is segment:
            self.show(end_offset, segment, tail.size_bytes)
        else:  # the one before was replaced or is gone, and is finished: here begins what is not visible yet
            invariant(segment.base_offset == end_offset, "the visible end lies in no segment", log, end_offset)
            self.show(end_offset, segment, 0)

    async def still(self, view: View, slot: int) -> Still | None:
        """A finished segment of the view; None: the log has others by now."""
        log = self._log
        if log.segments.base_offsets is not view.base_offsets:
            return None
        segment = log.segments[slot]
        pin = Pin(segment, self._unpinned.put)
        try:
            await log.reads.load(segment)
        except FilesChanged:
            return None
        except StorageFailed as error:
            raise ReadFailed(error.message) from error
        return None if segment.is_gone else Still(pin, segment.size_bytes, segment.end_offset)

    def end(self) -> None:
        """After the loop's end: nobody else touches the segments any more."""
        self._tail_pin = None
        self.view = self.view._replace(tail=None)
        self._unpinned.end()
