"""Time limits for many who wait for nearly the same thing, with one timer for all of them.

All have the same limit, so they run out in the order in which they came; most are over long before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from headpond.ports import Clock, TimerHandle


class Waiting(Protocol):
    is_over: bool
    """It came, or will not come any more: no limit counts for it."""

    def time_is_up(self) -> None: ...


class Patience:
    def __init__(self, clock: Clock, timeout_s: Callable[[], float]) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._waiting: deque[tuple[float, Waiting]] = deque()
        self._timer: TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, waiting: Waiting) -> None:
        """Its ``time_is_up`` is called after the time-out, unless it is over by then."""
        queue = self._waiting
        while queue and queue[0][1].is_over:
            queue.popleft()
        timeout_s = self._timeout_s()
        queue.append((self._clock.monotonic() + timeout_s, waiting))
        if self._timer is None:
            self._timer = self._clock.call_later(timeout_s, self._look)

    def _look(self) -> None:
        queue, now_s = self._waiting, self._clock.monotonic()
        while queue and (queue[0][1].is_over or queue[0][0] <= now_s):
            _, waiting = queue.popleft()
            if not waiting.is_over:
                waiting.time_is_up()
        self._timer = self._clock.call_later(queue[0][0] - now_s, self._look) if queue else None
