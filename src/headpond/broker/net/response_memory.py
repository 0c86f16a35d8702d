"""Answers that can't leave yet, over all connections, within one budget.

What counts: answers that wait in their slots behind an unanswered request, and answers in the transports of peers that
do not read. Of the latter only what is the broker's own memory. Bytes lent by a file (``runtime/lending.py``) are page
cache that the kernel may take back; what they pin, windows and descriptors, has a bound there, beyond which nothing is
lent and everything counts. In a slot they do count, because nothing but the peer's own order keeps them there.

    half of the budget    fetches are cut to one batch
    all of it             a request whose answer may be large is not served: its connection waits, and is not read.
                          The answers of Produce and Heartbeat are small, and they go on

While somebody waits, a connection that has held answers for longer than ``GRACE_S`` must be on course to be rid of them
within ``HELD_S_MAX``, or it is closed: peers that do not read do not keep the others waiting.
"""

from __future__ import annotations

from typing import Protocol

GRACE_S = 2.0
HELD_S_MAX = 30.0
PAUSE_S = 10.0
"""After this long without a waiting response, earlier waits are forgotten."""


class Waiting(Protocol):
    def there_is_room(self) -> None:
        """For the answer that it waits to ask for. Nothing may come out."""


class Holder(Protocol):
    """A connection."""

    @property
    def held_response_bytes(self) -> int: ...

    def recount(self) -> None:
        """Look again how much it holds, and ``count`` the difference."""

    def put_out(self, what: str) -> None:
        """Close it at once, because it holds ``what``."""


class ResponseMemory:
    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.held_bytes = 0
        self._holders: dict[Holder, tuple[int, float] | None] = {}  # how much, and when: since somebody waits
        self._waiting: dict[Waiting, None] = {}
        self._looked_s = 0.0

    @property
    def is_piling_up(self) -> bool:
        return self.held_bytes > self.budget_bytes // 2

    @property
    def is_full(self) -> bool:
        return self.held_bytes > self.budget_bytes

    @property
    def has_waiters(self) -> bool:
        return bool(self._waiting)

    def count(self, holder: Holder, held_bytes: int, change_bytes: int) -> None:
        """``holder`` has so much now, which is so much more or less than before."""
        self.held_bytes += change_bytes
        if held_bytes:
            self._holders.setdefault(holder, None)
        else:
            self._holders.pop(holder, None)

    def wait(self, waiting: Waiting) -> None:
        self._waiting[waiting] = None

    def forget(self, waiting: Waiting) -> None:
        self._waiting.pop(waiting, None)

    def next_waiting(self) -> Waiting | None:
        """Take the one that has waited for longest."""
        waiting = next(iter(self._waiting), None)
        if waiting is not None:
            del self._waiting[waiting]
        return waiting

    def off_course(self, now_s: float) -> list[Holder]:
        """Connections that keep others waiting. Called once in a while as long as somebody waits."""
        found = []
        if now_s - self._looked_s > PAUSE_S:
            self._holders = dict.fromkeys(self._holders)
        self._looked_s = now_s
        for holder, noted in list(self._holders.items()):
            holder.recount()
            held_bytes = holder.held_response_bytes
            if noted is None or not held_bytes:
                if held_bytes:
                    self._holders[holder] = (held_bytes, now_s)
                continue
            most_bytes, since_s = max(noted[0], held_bytes), noted[1]
            self._holders[holder] = (most_bytes, since_s)
            due = (now_s - since_s - GRACE_S) / HELD_S_MAX
            if most_bytes - held_bytes < due * most_bytes:
                found.append(holder)
        return found
