"""A fetch of a session that waits: it stands nowhere itself, its session does already.

So to wait costs what has changed. It is told of news by the session; with ``min_bytes`` it counts what becomes visible
and is woken when there may be enough. Of a partition that had nothing to tell, all that there is now is new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headpond.broker.handlers.fetch.read import has_undecided
from headpond.broker.handlers.fetch.session import FetchPartition, FetchSession
from headpond.broker.handlers.fetch.wire import PartitionData
from headpond.broker.replicas.parked_fetch import ParkedFetch
from headpond.broker.replicas.replicas import Replica


class SessionWait(ParkedFetch):
    """Hears of news from when it is made until it ``leaves``; without a timer it only notes that it was woken."""

    __slots__ = ("_min_bytes", "_new_bytes", "_read_committed", "_session", "is_woken")

    def __init__(
        self,
        session: FetchSession,
        *,
        min_bytes: int,
        read_committed: bool,
        new_bytes: Callable[[FetchPartition, Replica], int | None],
        wake: Callable[[bool], bool],
    ) -> None:
        super().__init__(min_bytes, wake)
        self._session = session
        self._min_bytes = min_bytes
        self._read_committed = read_committed
        self._new_bytes = new_bytes
        self.is_woken = False
        session.enter(self)

    def begin_again(self) -> None:
        """Everything that has changed is about to be read once more."""
        self._bytes_missing = self._min_bytes
        self._seen.clear()
        self.is_woken = False

    def has_read(self, results: Sequence[PartitionData], replicas: Sequence[Replica], size_bytes: int) -> None:
        """These were read just now, and so much was found. What has something to tell may get more."""
        self._bytes_missing -= size_bytes
        session = self._session
        for data, replica in zip(results, replicas, strict=False):
            if data.wanted in session.changed:
                data.wanted.stand_at(replica, session)
                if self._bytes_missing <= 1:
                    continue
                if self._read_committed and has_undecided(replica):
                    self.count_no_bytes()  # what a marker will make visible is there already, and would not be counted
                else:
                    self._seen[replica] = replica.partition.visible_end

    def hear(self, wanted: FetchPartition, replica: Replica) -> None:
        if self._bytes_missing > 1 and replica.partition.is_leader:
            is_known = replica in self._seen
            if self._are_missing_still(replica) if is_known else self._are_missing_with(wanted, replica):
                return
        self.is_woken = True
        self._try(force=False)

    def leave(self) -> None:
        super().leave()
        self._session.leave(self)

    def _are_missing_with(self, wanted: FetchPartition, replica: Replica) -> bool:
        new_bytes = self._new_bytes(wanted, replica)
        if new_bytes is None:
            self.count_no_bytes()
            return False
        self._seen[replica] = replica.partition.visible_end
        self._bytes_missing -= new_bytes
        return self._bytes_missing > 0
