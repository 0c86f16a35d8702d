"""Time limits for many who wait: at the high watermark, nearly always for some milliseconds.

Beginning and ending cost one entry of a dict and no timer: a sweep that runs only while somebody waits looks for those
whose time is over. Time out is not failure: what was appended stays in the log and may be committed later.
"""

from __future__ import annotations

from headpond.model import BrokerError, ErrorCode
from headpond.model.waits import Waiter
from headpond.ports import Clock

SWEEP_SECONDS = 0.1


class Deadlines:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Most are over before the next sweep: a deadline is worked out only then.
        self._fresh: dict[Waiter, int] = {}
        self._due_s: dict[Waiter, float] = {}
        self._is_sweeping = False

    def __len__(self) -> int:
        return len(self._fresh) + len(self._due_s)

    def begin(self, waiter: Waiter, timeout_ms: int) -> None:
        """``waiter`` is told REQUEST_TIMED_OUT after that time, a little later as a rule, unless ``end`` comes
        first."""
        self._fresh[waiter] = timeout_ms
        if not self._is_sweeping:
            self._is_sweeping = True
            self._clock.call_later(SWEEP_SECONDS, self._sweep)

    def end(self, waiter: Waiter) -> None:
        if self._fresh.pop(waiter, None) is None:
            self._due_s.pop(waiter, None)

    def _sweep(self) -> None:
        now_s = self._clock.monotonic()
        for waiter in [waiter for waiter, due_s in self._due_s.items() if due_s <= now_s]:
            self._due_s.pop(waiter, None)
            waiter.failed(BrokerError(ErrorCode.REQUEST_TIMED_OUT))
        fresh, self._fresh = self._fresh, {}
        for waiter, timeout_ms in fresh.items():
            self._due_s[waiter] = now_s + timeout_ms / 1_000
        self._is_sweeping = bool(self._due_s)
        if self._is_sweeping:
            self._clock.call_later(SWEEP_SECONDS, self._sweep)
