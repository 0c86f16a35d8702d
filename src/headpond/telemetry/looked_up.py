"""Facts that only a worker can find out (free space, open files): looked up at each scrape, waited for a short while.

A disk that hangs must not make the metrics hang: after ``WAIT_S`` the scrape goes on with what was known before. One
look is under way at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from headpond.ports import Clock, Workers

T = TypeVar("T")
log = logging.getLogger("headpond.telemetry")

WAIT_S = 1.0


class LookedUp(Generic[T]):
    def __init__(self, look: Callable[[], T], clock: Clock, workers: Workers) -> None:
        self.value: T | None = None
        self._look = look
        self._clock = clock
        self._workers = workers
        self._under_way: asyncio.Future[None] | None = None

    async def refresh(self) -> None:
        """``value`` is fresh when this returns, unless that takes too long or fails."""
        if self._under_way is None:
            self._under_way = asyncio.get_running_loop().create_future()
            self._workers.submit(self._look, self._found)
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def enough(_: object = None) -> None:
            if not waiting.done():
                waiting.set_result(None)

        self._under_way.add_done_callback(enough)
        timer = self._clock.call_later(WAIT_S, enough)
        try:
            await waiting
        finally:
            timer.cancel()

    def _found(self, value: T | None, error: BaseException | None) -> None:
        under_way, self._under_way = self._under_way, None
        if error is not None:
            log.warning("facts for the metrics could not be looked up: %r", error)
        else:
            self.value = value
        if under_way is not None and not under_way.done():
            under_way.set_result(None)
