"""Where looks wait for a thread or a process: each client has one place at a time, and clients take turns.

A look that waits gives up when its time is over or its client is gone, and leaves the queue then. Its time has a timer
of its own; clients are looked at every ``CLIENTS_S``, while somebody waits: there are as many as connections at most,
however many looks each of them has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from headpond.ports import Clock, TimerHandle

CLIENTS_S = 0.25


class Waiting(Protocol):
    """A look."""

    deadline_s: float
    by: object
    """Whose turn it is: the client."""

    @property
    def why_over(self) -> Exception | None:
        """Why it should be given up, if it should."""

    def timed_out(self) -> Exception: ...


_Line = dict["asyncio.Future[None]", Waiting]
"""The looks of one client, in the order of their coming; the future is done when it has a place."""


class LookQueue:
    def __init__(self, places: int, clock: Clock) -> None:
        self._clock = clock
        self._free = places
        self._busy: set[object] = set()
        self._waiting: dict[object, _Line] = {}  # by client, whose turn it is first
        self._timer: TimerHandle | None = None

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def place(self, look: Waiting) -> AsyncIterator[None]:
        """Raises what ``look.why_over`` says."""
        if self._free and look.by not in self._busy:
            self._free -= 1
            self._busy.add(look.by)
        else:
            await self._wait(look)
        try:
            if (why := look.why_over) is not None:
                raise why
            yield
        finally:
            self._leave(look.by)

    async def _wait(self, look: Waiting) -> None:
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def time_is_up() -> None:
            self._give_up(called, look, look.timed_out())

        self._waiting.setdefault(look.by, {})[called] = look
        if self._timer is None:
            self._timer = self._clock.call_later(CLIENTS_S, self._look_at_clients)
        timer = self._clock.call_later(look.deadline_s - self._clock.monotonic(), time_is_up)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled() and called.exception() is None:
                self._leave(look.by)  # it was called at the same moment
            else:
                self._forget(called, look)
            raise
        finally:
            timer.cancel()

    def _look_at_clients(self) -> None:
        for line in list(self._waiting.values()):
            if next(iter(line.values())).why_over is not None:  # so are the others, if the client is gone
                for called, look in list(line.items()):
                    if (why := look.why_over) is not None:
                        self._give_up(called, look, why)
        self._timer = self._clock.call_later(CLIENTS_S, self._look_at_clients) if self._waiting else None

    def _give_up(self, called: asyncio.Future[None], look: Waiting, why: Exception) -> None:
        if not called.done():
            self._forget(called, look)
            called.set_exception(why)

    def _forget(self, called: asyncio.Future[None], look: Waiting) -> None:
        line = self._waiting.get(look.by)
        if line is not None:
            line.pop(called, None)
            if not line:
                del self._waiting[look.by]

    def _leave(self, by: object) -> None:
        self._free += 1
        self._busy.discard(by)
        if (line := self._waiting.pop(by, None)) is not None:
            self._waiting[by] = line  # behind the others
        while (called := self._next()) is not None:
            if not called.done():  # a cancelled one is forgotten a moment later
                self._free -= 1
                called.set_result(None)
                return

    def _next(self) -> asyncio.Future[None] | None:
        """The first of the client whose turn it is."""
        by = next((each for each in self._waiting if each not in self._busy), None)
        if by is None:
            return None
        line = self._waiting[by]
        called = next(iter(line))
        look = line[called]
        self._forget(called, look)
        if not called.done():
            self._busy.add(by)
        return called
