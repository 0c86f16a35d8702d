"""A long poll: a fetch that waits at its partitions until there may be enough to answer it, or its time is up.

A connection has one at a time: its next fetch is served when this one is answered (``connection.py``). When all long
polls together weigh too much, a fetch of many partitions waits without standing at them: it is answered, late, with
one batch of what there was when it came. A fetch is never answered before its time for want of room: its client would
ask again at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headpond.broker.replicas.replicas import Replica
from headpond.ports import TimerHandle
from headpond.storage.log.segment import Segment

FETCH_WEIGHT = 50
"""Of a parked fetch, in parked partitions: they take a few hundred bytes each."""
SMALL_WEIGHT = 100
"""One of so little weight stands at its partitions, however much the others weigh."""
PARKED_WEIGHT_MAX = 500_000
"""Of all parked fetches: 150 MiB or so."""


class ParkedRoom:
    """What is parked, and how much it weighs."""

    def __init__(self) -> None:
        self.count = 0
        self.weight = 0

    def enter(self, partitions: int) -> bool:
        """Whether there is room for it."""
        weight = FETCH_WEIGHT + partitions
        if weight > SMALL_WEIGHT and self.weight + weight > PARKED_WEIGHT_MAX:
            return False
        self.count += 1
        self.weight += weight
        return True

    def leave(self, partitions: int) -> None:
        self.count -= 1
        self.weight -= FETCH_WEIGHT + partitions


class ParkedFetch:
    """``wake(force)`` tries to answer and says whether it did. Removed from everywhere before it answers."""

    __slots__ = ("_bytes_missing", "_replicas", "_seen", "_timer", "_wake")

    def __init__(self, bytes_missing: int, wake: Callable[[bool], bool]) -> None:
        self._bytes_missing = bytes_missing
        self._wake = wake
        self._replicas: list[Replica] = []
        self._seen: dict[Replica, tuple[Segment | None, int]] = {}  # where each could be read to, if bytes are counted
        self._timer: TimerHandle | None = None

    def stand_at(self, replicas: Iterable[Replica]) -> None:
        for replica in replicas:
            self._replicas.append(replica)
            replica.fetch_waiters[self] = None
            replica.partition.hurry()
            if self._bytes_missing > 1:
                self._seen[replica] = replica.partition.visible_end

    def wait(self, timer: TimerHandle) -> None:
        self._timer = timer

    def count_no_bytes(self) -> None:
        """Any news may be enough."""
        self._bytes_missing = 1

    def news(self, replica: Replica) -> None:
        """That partition's high watermark moved, or its leadership did."""
        if not (self._bytes_missing > 1 and replica.partition.is_leader and self._are_missing_still(replica)):
            self._try(force=False)

    def _are_missing_still(self, replica: Replica) -> bool:
        """Count what has become visible there."""
        seen_segment, seen_bytes = self._seen[replica]
        segment, size_bytes = self._seen[replica] = replica.partition.visible_end
        if segment is not None and segment is seen_segment and size_bytes >= seen_bytes:
            self._bytes_missing -= size_bytes - seen_bytes
            return self._bytes_missing > 0
        self._bytes_missing = 1  # in another segment: not counted, so it is looked at now and with all that comes
        return False

    def time_is_up(self) -> None:
        self._try(force=True)

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for replica in self._replicas:
            replica.fetch_waiters.pop(self, None)
        self._replicas.clear()

    def leave_some(self, count: int) -> bool:
        """Leave so many partitions; whether there are more."""
        for replica in self._replicas[-count:]:
            replica.fetch_waiters.pop(self, None)
        del self._replicas[-count:]
        return bool(self._replicas)

    def _try(self, *, force: bool) -> None:
        if self._timer is not None and self._wake(force):
            self.leave()
