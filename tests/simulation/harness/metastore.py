"""A metadata store in memory, with the faults of a distributed one: ``ports.MetadataStore`` for simulations.

``StoreServer`` is the one linearizable map that all hosts share; it outlives them. Each host has a
``SimulatedMetadataStore``, its client, which takes time and fails: an answer can be lost after the change was made or
before it (``OutcomeUnknown`` both times: the caller can't tell), the server can be out of reach, watches can stall, and
history can be compacted away under a watcher.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Literal, NamedTuple, TypeVar

from headpond.model import OutcomeUnknown, StorageFailed
from headpond.ports import (
    Change,
    Changes,
    Clock,
    Committed,
    Compare,
    Conflict,
    Delete,
    Entry,
    HistoryLost,
    LeaseLost,
    Listing,
    Put,
    TimerHandle,
)
from headpond.runtime.metastore_rules import check_transaction

T = TypeVar("T")
LostAnswer = Literal["done", "not done"]


class _Held(NamedTuple):
    entry: Entry
    lease: int | None


class _Lease:
    def __init__(self, ttl_ms: int, timer: TimerHandle) -> None:
        self.ttl_ms = ttl_ms
        self.timer = timer


class StoreServer:
    """The map itself: synchronous, never fails. Leases run on the clock given here, the server's own."""

    def __init__(self, clock: Clock, *, history_revisions_max: int = 10_000) -> None:
        self._clock = clock
        self._history_revisions_max = history_revisions_max
        self._held: dict[str, _Held] = {}
        self._history: list[Changes] = []
        self._leases: dict[int, _Lease] = {}
        self._leases_granted = 0
        self._forgotten_up_to = 0
        self.revision = 0
        self.on_change: list[Callable[[], None]] = []

    def get(self, key: str) -> Entry | None:
        held = self._held.get(key)
        return held.entry if held else None

    def list(self, prefix: str) -> Listing:
        found = sorted(key for key in self._held if key.startswith(prefix))
        return Listing(self.revision, tuple(self._held[key].entry for key in found))

    def transact(self, compares: Sequence[Compare], writes: Sequence[Put | Delete]) -> Committed | Conflict:
        if not all(self._holds(compare) for compare in compares):
            keys = dict.fromkeys(compare.key for compare in compares)
            return Conflict(self.revision, tuple(self._held[key].entry for key in keys if key in self._held))
        for write in writes:
            if isinstance(write, Put) and write.lease is not None and write.lease not in self._leases:
                raise LeaseLost(f"lease {write.lease} has run out")
        return Committed(self._apply(writes))

    def changes_after(self, revision: int) -> Sequence[Changes]:
        if revision > self.revision:
            raise HistoryLost(f"revision {revision} is not in this store, whose newest is {self.revision}")
        if revision < self._forgotten_up_to:
            raise HistoryLost(f"revision {revision} is forgotten, history begins after {self._forgotten_up_to}")
        return self._history[revision - self._forgotten_up_to :]

    def compact(self, up_to_revision: int) -> None:
        """Forget history: watches from before end with ``HistoryLost``."""
        del self._history[: max(0, up_to_revision - self._forgotten_up_to)]
        self._forgotten_up_to = max(self._forgotten_up_to, up_to_revision)

    def grant_lease(self, ttl_ms: int) -> int:
        self._leases_granted += 1
        lease = self._leases_granted
        self._leases[lease] = _Lease(ttl_ms, self._plan_end(lease, ttl_ms))
        return lease

    def keep_lease(self, lease: int) -> bool:
        found = self._leases.get(lease)
        if found is None:
            return False
        found.timer.cancel()
        found.timer = self._plan_end(lease, found.ttl_ms)
        return True

    def end_lease(self, lease: int) -> None:
        found = self._leases.pop(lease, None)
        if found is not None:
            found.timer.cancel()
            self._apply([Delete(key) for key in sorted(self._held) if self._held[key].lease == lease])

    def prolong_leases(self) -> None:
        """A new leader of the store gives each lease its whole time again."""
        for lease in list(self._leases):
            self.keep_lease(lease)

    def _plan_end(self, lease: int, ttl_ms: int) -> TimerHandle:
        return self._clock.call_later(ttl_ms / 1_000, lambda: self.end_lease(lease))

    def _holds(self, compare: Compare) -> bool:
        held = self._held.get(compare.key)
        if held is None:
            return compare.revision == 0
        entry = held.entry
        return compare.revision == (entry.mod_revision if compare.target == "mod" else entry.create_revision)

    def _apply(self, writes: Iterable[Put | Delete]) -> int:
        revision = self.revision + 1
        changes: list[Change] = []
        for write in writes:
            before = self._held.get(write.key)
            if isinstance(write, Put):
                created = before.entry.create_revision if before else revision
                value = bytes(write.value)
                self._held[write.key] = _Held(Entry(write.key, value, created, revision), write.lease)
                changes.append(Change(write.key, value, revision))
            elif before is not None:
                del self._held[write.key]
                changes.append(Change(write.key, None, revision))
        if changes:
            self.revision = revision
            self._history.append(Changes(revision, tuple(changes)))
            self.compact(revision - self._history_revisions_max)
            for told in list(self.on_change):
                told()
        return self.revision


class SimulatedMetadataStore:
    """One host's client of the server."""

    def __init__(self, server: StoreServer, clock: Clock, latency_s: Callable[[], float] = lambda: 0.0) -> None:
        self._server = server
        self._clock = clock
        self._latency_s = latency_s
        self._lost_answers: list[LostAnswer] = []
        self._closed = False
        self._waiters: list[asyncio.Future[None]] = []
        self._watches_stalled = False
        self._is_reachable = True
        server.on_change.append(self._wake_watches)

    # --- faults -------------------------------------------------------------------------------------------------------

    def lose_next_answer(self, outcome: LostAnswer) -> None:
        """The next write, lease calls included, ends ``OutcomeUnknown``, having been done or not."""
        self._lost_answers.append(outcome)

    def answer_all(self) -> None:
        """No more answers are lost."""
        self._lost_answers.clear()

    @property
    def is_reachable(self) -> bool:
        """False: writes end ``OutcomeUnknown`` (not done), reads fail, watches are silent."""
        return self._is_reachable

    @is_reachable.setter
    def is_reachable(self, reachable: bool) -> None:
        self._is_reachable = reachable
        self._wake_watches()

    def stall_watches(self, stalled: bool) -> None:
        """Watches say nothing until this is called with False."""
        self._watches_stalled = stalled
        self._wake_watches()

    # --- MetadataStore ------------------------------------------------------------------------------------------------

    async def get(self, key: str) -> Entry | None:
        return await self._read(lambda: self._server.get(key))

    async def list(self, prefix: str) -> Listing:
        return await self._read(lambda: self._server.list(prefix))

    async def transact(self, compares: Sequence[Compare], writes: Iterable[Put | Delete]) -> Committed | Conflict:
        compares, writes = tuple(compares), tuple(writes)
        check_transaction(compares, writes)
        return await self._write(lambda: self._server.transact(compares, writes))

    async def watch(self, prefix: str, *, after_revision: int) -> AsyncIterator[Changes]:
        self._require_open()
        revision = after_revision
        while not self._closed:
            await self._travel()
            for changes in [] if self._is_deaf() else self._server.changes_after(revision):
                revision = changes.revision
                ours = tuple(change for change in changes.changes if change.key.startswith(prefix))
                if ours:
                    yield Changes(changes.revision, ours)
                if self._is_deaf():
                    break
            if self._closed:
                return
            if self._is_deaf() or self._server.revision == revision:
                await self._next_wake()

    async def grant_lease(self, ttl_ms: int) -> int:
        return await self._write(lambda: self._server.grant_lease(ttl_ms))

    async def keep_lease(self, lease: int) -> bool:
        return await self._write(lambda: self._server.keep_lease(lease))

    async def revoke_lease(self, lease: int) -> None:
        await self._write(lambda: self._server.end_lease(lease))

    async def close(self) -> None:
        if not self._closed:
            self.drop()
            self._wake_watches()

    def drop(self) -> None:
        """The process that used it is gone: the server has nobody to tell any more."""
        if not self._closed:
            self._closed = True
            self._server.on_change.remove(self._wake_watches)

    # --- the way there and back ---------------------------------------------------------------------------------------

    async def _read(self, ask: Callable[[], T]) -> T:
        self._require_open()
        await self._travel()
        if not self.is_reachable:
            raise StorageFailed(message="the metadata store is out of reach")
        answer = ask()
        await self._travel()
        return answer

    async def _write(self, act: Callable[[], T]) -> T:
        self._require_open()
        lost = self._lost_answers.pop(0) if self._lost_answers else None
        await self._travel()
        if lost == "not done" or not self.is_reachable:
            raise OutcomeUnknown(message="the metadata store did not answer")
        answer = act()
        await self._travel()
        if lost == "done":
            raise OutcomeUnknown(message="the metadata store's answer was lost")
        return answer

    async def _travel(self) -> None:
        latency_s = self._latency_s()
        if latency_s > 0:
            await self._clock.sleep(latency_s)
        else:
            await asyncio.sleep(0)

    def _is_deaf(self) -> bool:
        return self._closed or self._watches_stalled or not self.is_reachable

    async def _next_wake(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _wake_watches(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("the metadata store is closed")
