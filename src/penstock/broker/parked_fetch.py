"""A long poll: a fetch that waits at its partitions until there may be enough to answer it, or its time is up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.broker.replicas import Replica
from penstock.ports import TimerHandle


class ParkedFetch:
    """``wake(force)`` tries to answer and says whether it did. Removed from everywhere before it answers."""

    __slots__ = ("_bytes_at_start", "_bytes_missing", "_replicas", "_timer", "_wake")

    def __init__(self, replicas: Sequence[Replica], bytes_missing: int, wake: Callable[[bool], bool]) -> None:
        self._replicas = replicas
        self._bytes_missing = bytes_missing
        self._bytes_at_start = sum(replica.appended_bytes for replica in replicas) if bytes_missing > 1 else 0
        self._wake = wake
        self._timer: TimerHandle | None = None

    def wait(self, timer: TimerHandle) -> None:
        self._timer = timer
        for replica in self._replicas:
            replica.fetch_waiters[self] = None
            replica.partition.hurry()

    def news(self, replica: Replica) -> None:
        """That partition's high watermark moved, or its leadership did."""
        if self._bytes_missing > 1 and replica.partition.is_leader:
            # What was appended may not be visible yet; an early look only costs a read, and the wait goes on.
            appended = sum(replica.appended_bytes for replica in self._replicas) - self._bytes_at_start
            if appended < self._bytes_missing:
                return
        self._try(force=False)

    def time_is_up(self) -> None:
        self._try(force=True)

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for replica in self._replicas:
            replica.fetch_waiters.pop(self, None)

    def _try(self, *, force: bool) -> None:
        if self._timer is not None and self._wake(force):
            self.leave()
