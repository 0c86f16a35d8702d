"""Waiting with the Clock port: time-outs, back-off, and an event that can be woken by a timer."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from headpond.model.backoff import Backoff
from headpond.ports import Clock, Random, TimerHandle

T = TypeVar("T")

BACKOFF_FIRST_S = 0.05
BACKOFF_MAX_S = 1.0
TIMER_S_MIN = 0.001
"""A timer may fire a moment early, by a clock's rounding: waiting for the rest must not become a busy loop."""


async def within(clock: Clock, seconds: float, future: asyncio.Future[T]) -> T:
    """The future's result, or ``TimeoutError``; the future itself is left alone and may still finish."""
    if not future.done():
        expired: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = clock.call_later(max(0.0, seconds), lambda: None if expired.done() else expired.set_result(None))
        try:
            await asyncio.wait((future, expired), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            expired.cancel()
    if not future.done():
        raise TimeoutError
    return future.result()


class JitteredBackoff(Backoff):
    """Pauses that double from 50 ms to 1 s, a fifth of each left to chance so that clients do not come in step."""

    def __init__(self, random: Random) -> None:
        super().__init__(BACKOFF_FIRST_S, BACKOFF_MAX_S)
        self._random = random

    def next_s(self) -> float:
        return super().next_s() * (0.8 + 0.4 * self._random.random_int(1_024) / 1_024)


class Alarm:
    """An event that one task waits for, rung by others or by the clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()
        self._timer: TimerHandle | None = None

    def ring(self) -> None:
        self._event.set()

    async def wait(self, seconds_max: float | None = None) -> None:
        """Until it is rung (perhaps before the call), or for that long."""
        if seconds_max is not None and not self._event.is_set():
            self._timer = self._clock.call_later(max(TIMER_S_MIN, seconds_max), self._event.set)
        try:
            await self._event.wait()
            self._event.clear()
        finally:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
