"""Hands a store's changes to its watchers, on the loop.

Promises    A watcher gets every change after its starting revision once, in order, a transaction's changes together.
            One that falls too far behind gets ``HistoryLost`` (and lists again) instead of growing memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from headpond.ports import Changes, HistoryLost

# A watcher that has this many revisions to catch up with is better served by a fresh list.
QUEUED_REVISIONS_MAX = 10_000


class Watcher:
    """One watch: a queue that the hub fills and the watching task empties."""

    def __init__(self, prefix: str, *, after_revision: int) -> None:
        self._prefix = prefix
        self._seen_up_to_revision = after_revision
        self._queue: deque[Changes] = deque()
        self._lost: str | None = None
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def offer(self, changes: Changes) -> None:
        """Queue what concerns this watcher and is news to it."""
        if self._lost is not None or changes.revision <= self._seen_up_to_revision:
            return
        self._seen_up_to_revision = changes.revision
        ours = tuple(change for change in changes.changes if change.key.startswith(self._prefix))
        if not ours:
            return
        if len(self._queue) >= QUEUED_REVISIONS_MAX:
            self.lose(f"more than {QUEUED_REVISIONS_MAX} revisions behind")
            return
        self._queue.append(Changes(changes.revision, ours))
        self._wake()

    def lose(self, why: str) -> None:
        """The story has a gap: end with ``HistoryLost``, at once (what is queued would only be half of it)."""
        self._lost = why
        self._queue.clear()
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._wake()

    async def next(self) -> Changes | None:
        """The next revision's changes; None when the store is closed."""
        while True:
            if self._lost is not None:
                raise HistoryLost(self._lost)
            if self._queue:
                return self._queue.popleft()
            if self._closed:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class WatchHub:
    """All watchers of one store object."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []

    def add(self, watcher: Watcher) -> None:
        self._watchers.append(watcher)

    def remove(self, watcher: Watcher) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def deliver(self, revisions: Sequence[Changes]) -> None:
        for changes in revisions:
            for watcher in self._watchers:
                watcher.offer(changes)

    def lose(self, why: str) -> None:
        for watcher in self._watchers:
            watcher.lose(why)

    def close(self) -> None:
        for watcher in self._watchers:
            watcher.close()
