"""A clock that only a test moves, and one that follows a (simulated) loop."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Any

from headpond.ports import TimerHandle
from simulation.harness.loop import Life


class _Timer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """``ports.Clock`` whose time stands still until ``advance``. Works with and without a loop."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.wall_offset_ms = now_ms
        """Wall time minus monotonic time; a test may change it: wall clocks jump."""
        self._now_us = 0  # whole numbers: adding a delay and subtracting it again gives the same instant
        self._timers: list[tuple[int, int, _Timer]] = []
        self._order = itertools.count()

    def now_ms(self) -> int:
        return self.wall_offset_ms + self._now_us // 1_000

    def monotonic(self) -> float:
        return self._now_us / 1_000_000

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle:
        timer = _Timer(callback)
        heapq.heappush(self._timers, (self._now_us + max(0, round(delay_s * 1e6)), next(self._order), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        awake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: None if awake.done() else awake.set_result(None))
        try:
            await awake
        finally:
            timer.cancel()

    def advance(self, seconds: float) -> int:
        """Move on, calling each timer at its own instant, in order. Timers that are set meanwhile count too.
        Returns how many were called."""
        called = 0
        until_us = self._now_us + round(seconds * 1e6)
        while self._timers and self._timers[0][0] <= until_us:
            when_us, _, timer = heapq.heappop(self._timers)
            self._now_us = max(self._now_us, when_us)
            if timer.callback is not None:
                called += 1
                timer.callback()
        self._now_us = until_us
        return called

    def stall(self, seconds: float) -> None:
        """Time passes and no timer is called, as when a loop is busy; ``advance`` calls them, late."""
        self._now_us += round(seconds * 1e6)

    def next_timer_s(self) -> float | None:
        """Seconds until the next timer; None when there is none."""
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return max(0, self._timers[0][0] - self._now_us) / 1e6 if self._timers else None

    async def run_until(self, awaitable: asyncio.Future[Any], *, turns_max: int = 100_000) -> None:
        """Give everybody their turns and jump from timer to timer until ``awaitable`` is done."""
        for _ in range(turns_max):
            for _ in range(20):  # let what is ready run before time moves
                if awaitable.done():
                    return
                await asyncio.sleep(0)
            delay_s = self.next_timer_s()
            if delay_s is None:
                raise RuntimeError("nothing is ready and no timer is set: this would wait forever")
            self.advance(delay_s)
        raise RuntimeError(f"not done after {turns_max} turns")


class LoopClock:
    """``ports.Clock`` on the running loop's own time: virtual under a virtual loop. Its monotonic time may run faster
    or slower (``run_at``) and never goes back; its wall clock may jump (``wall_offset_ms``). Timers belong to the life
    that sets them, or to ``life``: a server's timers must not die with the client for whom it set them."""

    def __init__(self, now_ms: int = 1_700_000_000_000, *, life: Life | None = None) -> None:
        self.wall_offset_ms = now_ms
        self._life = life
        self._rate = 1.0
        self._since = (0.0, 0.0)  # the loop's time and this clock's when the rate last changed

    def run_at(self, rate: float) -> None:
        self._since = (asyncio.get_running_loop().time(), self.monotonic())
        self._rate = rate

    def now_ms(self) -> int:
        return self.wall_offset_ms + int(self.monotonic() * 1_000)

    def monotonic(self) -> float:
        loop_s, own_s = self._since
        return own_s + (asyncio.get_running_loop().time() - loop_s) * self._rate

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle:
        loop = asyncio.get_running_loop()
        if self._life is None:
            return loop.call_later(delay_s / self._rate, callback)
        return self._life.loop.call_on(self._life, loop.time() + delay_s / self._rate, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._rate)
