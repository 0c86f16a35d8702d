"""Time-outs on the ``Clock`` port, made for what they are used for.

``Deadline``   put off again and again, seldom reached: a member's session. Putting off stores one number; the timer is
               looked at when it fires, and set again for the rest. Thousands of heartbeats cost thousands of stores.
``Alarm``      set once for one purpose, replaced by the next: the end of a join or of a sync phase.

Both end in a *decision* that may write records, so firing only asks for one; what has been put off, cancelled or
replaced by the time it is made is not due any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headpond.coordination.runtime import Decision
from headpond.ports import Clock, TimerHandle

WriteSoon = Callable[[str, Callable[[Any], Decision[None]]], None]
"""``(what, decide)``: decide and write soon, in the turn of a task of its own."""

NOTHING: Decision[None] = Decision(None)

_EARLY_S = 0.001
"""Loops fire up to a tick of theirs too early."""


class Deadline:
    __slots__ = ("_at_s", "_clock", "_expired", "_fires_s", "_timer")

    def __init__(self, clock: Clock, expired: Callable[[], None]) -> None:
        """``expired`` is called when a deadline has passed; it asks ``is_due`` again when it acts later."""
        self._clock = clock
        self._expired = expired
        self._at_s = 0.0
        self._fires_s = 0.0
        self._timer: TimerHandle | None = None

    def put_off(self, timeout_ms: int) -> None:
        self._at_s = at_s = self._clock.monotonic() + timeout_ms / 1000
        if self._timer is None:
            self._arm(timeout_ms / 1000)
        elif at_s < self._fires_s:
            self._timer.cancel()
            self._arm(timeout_ms / 1000)

    @property
    def is_due(self) -> bool:
        return self._clock.monotonic() >= self._at_s - _EARLY_S

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, delay_s: float) -> None:
        self._fires_s = self._at_s
        self._timer = self._clock.call_later(max(0.0, delay_s), self._fired)

    def _fired(self) -> None:
        self._timer = None
        left_s = self._at_s - self._clock.monotonic()
        if left_s > _EARLY_S:
            self._arm(left_s)
        else:
            self._expired()


class Alarm:
    __slots__ = ("_clock", "_round", "_timer", "_write_soon")

    def __init__(self, clock: Clock, write_soon: WriteSoon) -> None:
        self._clock = clock
        self._write_soon = write_soon
        self._timer: TimerHandle | None = None
        self._round = 0

    def set(self, what: str, delay_ms: int, decide: Callable[[], Decision[None]]) -> None:
        self.cancel()
        this_round = self._round

        def decide_if_due(_: object) -> Decision[None]:
            if self._round != this_round:
                return NOTHING
            self.cancel()
            return decide()

        self._timer = self._clock.call_later(
            max(0, delay_ms) / 1000,
            lambda: self._write_soon(what, decide_if_due) if self._round == this_round else None,
        )

    @property
    def is_set(self) -> bool:
        return self._timer is not None

    def cancel(self) -> None:
        self._round += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
