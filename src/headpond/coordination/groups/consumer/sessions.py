"""The time-outs of members. Lost with a crash: after it, everybody's session starts anew.

A time-out ends in a decision, made a little later. Whoever is heard of in between is safe; and a decision that could
not be written is asked for again.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from headpond.coordination.groups.deadline import NOTHING, Deadline, WriteSoon
from headpond.coordination.runtime import Decision
from headpond.ports import Clock

RETRY_MS = 500


class Timeout(enum.Enum):
    """The value completes "fenced because"."""

    SESSION = "its session expired"
    REVOCATION = "it did not give its partitions up within its rebalance time-out"
    JOIN = "it did not join again within its rebalance time-out"
    SYNC = "it did not ask for its assignment within its rebalance time-out"


Expire = Callable[[str, str, Timeout], Decision[None]]


class Sessions:
    def __init__(self, clock: Clock, write_soon: WriteSoon, expire: Expire) -> None:
        self._clock = clock
        self._write_soon = write_soon
        self._expire = expire
        self._timers: dict[tuple[Timeout, str, str], _Timer] = {}

    def put_off(self, kind: Timeout, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Start it, or start it anew."""
        key = (kind, group_id, member_id)
        timer = self._timers.get(key)
        if timer is None:
            timer = self._timers[key] = _Timer(self._clock, lambda: self._expired(key))
        timer.has_expired = False
        timer.deadline.put_off(max(0, timeout_ms))

    def start(self, kind: Timeout, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Unless it runs already."""
        if (kind, group_id, member_id) not in self._timers:
            self.put_off(kind, group_id, member_id, timeout_ms)

    def cancel(self, kind: Timeout, group_id: str, member_id: str) -> None:
        timer = self._timers.pop((kind, group_id, member_id), None)
        if timer is not None:
            timer.deadline.cancel()

    def forget(self, group_id: str, member_id: str) -> None:
        for kind in Timeout:
            self.cancel(kind, group_id, member_id)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.deadline.cancel()
        self._timers.clear()

    def _expired(self, key: tuple[Timeout, str, str]) -> None:
        kind, group_id, member_id = key
        timer = self._timers[key]
        timer.has_expired = True
        timer.deadline.put_off(RETRY_MS)
        self._write_soon(
            f"fence {member_id} of {group_id}: {kind.value}",
            lambda _: self._expire(group_id, member_id, kind) if self._is_still_expired(key, timer) else NOTHING,
        )

    def _is_still_expired(self, key: tuple[Timeout, str, str], timer: _Timer) -> bool:
        return self._timers.get(key) is timer and timer.has_expired


class _Timer:
    __slots__ = ("deadline", "has_expired")

    def __init__(self, clock: Clock, expired: Callable[[], None]) -> None:
        self.deadline = Deadline(clock, expired)
        self.has_expired = False
