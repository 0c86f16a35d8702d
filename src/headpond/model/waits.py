"""Waiting until an offset is reached: the flushed end of a log, or the high watermark of a partition.

Waiting costs one place in a queue, no task, future or timer. Those who want a future take ``Awaited``; time limits are
another's concern (``replication/deadlines.py``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from headpond.model.errors import BrokerError


class Waiter(Protocol):
    """Told at least once; what it is told first counts: a place in a queue stays until the queue comes to it, also when
    a time limit was met before."""

    def reached(self) -> None: ...

    def failed(self, error: BrokerError) -> None:
        """It will not be reached here, or not in time: then it may be later."""


class OffsetWaits(deque[tuple[int, Waiter]]):
    """(end offset, who waits for it), in the order of the offsets."""

    __slots__ = ()

    def add(self, end_offset: int, waiter: Waiter) -> None:
        if not self or self[-1][0] <= end_offset:
            self.append((end_offset, waiter))
            return
        place = len(self) - 1  # what was asked about was appended before others' last batches: near the end
        while place and self[place - 1][0] > end_offset:
            place -= 1
        self.insert(place, (end_offset, waiter))

    def reach(self, end_offset: int) -> None:
        while self and self[0][0] <= end_offset:
            self.popleft()[1].reached()

    def fail(self, error: BrokerError) -> None:
        """All of them; whoever waits anew meanwhile does so in vain."""
        waiting = list(self)
        self.clear()
        for _, waiter in waiting:
            waiter.failed(error)


class Awaited:
    """A waiter for a coroutine: ``await waiter.future``."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def reached(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def failed(self, error: BrokerError) -> None:
        if not self.future.done():
            self.future.set_exception(error)
