"""How long the loop was held: a timer of one second, and by how much it came too late. Runs only where metrics are
served."""

from __future__ import annotations

from headpond.ports import Clock, TimerHandle
from headpond.telemetry.metrics import Histogram

PERIOD_S = 1.0


class LoopWatch:
    def __init__(self, clock: Clock) -> None:
        self.lag = Histogram()
        self._clock = clock
        self._due_s = 0.0
        self._timer: TimerHandle | None = None

    def start(self) -> None:
        self._due_s = self._clock.monotonic() + PERIOD_S
        self._timer = self._clock.call_later(PERIOD_S, self._tick)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self.lag.observe(max(0.0, self._clock.monotonic() - self._due_s))
        self.start()
