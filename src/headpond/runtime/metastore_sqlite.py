"""The embedded metadata store: ``ports.MetadataStore`` on one SQLite file, for the broker processes of one machine.

Promises    What ``metastore_database`` promises, on the loop: nothing here waits for the disk on the loop's thread.
            Changes made through this object reach its watchers before ``transact`` returns; those of other processes
            within ``POLL_EVERY_S``. Leases run out whether or not their owner lives: every open store sees to it.
A crash     loses what had not been answered, at most.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from headpond.ports import (
    Changes,
    Clock,
    Committed,
    Compare,
    Conflict,
    Delete,
    Entry,
    HistoryLost,
    Listing,
    Put,
    TimerHandle,
)
from headpond.runtime.metastore_database import Database, State, StoreUnusable
from headpond.runtime.metastore_rules import check_transaction
from headpond.runtime.metastore_watch import Watcher, WatchHub
from headpond.runtime.workers import ThreadWorkers

__all__ = ["HISTORY_REVISIONS_MAX", "SqliteMetadataStore", "StoreUnusable"]

T = TypeVar("T")

# Other processes' commits are looked for this often, by the write-ahead log's size and time: 2 us on the loop, because
# SQLite has the file open. Equal times may hide a commit (their grain is some ms), so every tenth time it looks anyway;
# that costs some 300 us in two threads.
POLL_EVERY_S = 0.1
LOOK_AT_LEAST_EVERY = 10
# A watcher of a broker that was suspended for longer lists again.
HISTORY_REVISIONS_MAX = 10_000


class _News(NamedTuple):
    """What a look at the history found since the last one: revisions in order, or a gap."""

    revisions: Sequence[Changes] = ()
    gap: str | None = None


class SqliteMetadataStore:
    """Make it with ``open``. All its blocking work runs in one thread of its own, in the order of the calls."""

    def __init__(self, path: str, database: Database, workers: ThreadWorkers, clock: Clock, state: State) -> None:
        self._log_path = f"{path}-wal"
        self._log_facts: tuple[int, int] | None = None
        self._polls_without_look = 0
        self._next_expiry_ms = state.next_expiry_ms
        self._database = database
        self._workers = workers
        self._clock = clock
        self._hub = WatchHub()
        self._timer: TimerHandle | None = None
        self._closed = False
        self._told_up_to_revision = (
            state.revision
        )  # the worker thread's: what the hub has been, or is about to be, told
        self._plan_look()

    @classmethod
    async def open(
        cls, path: str, clock: Clock, *, history_revisions_max: int = HISTORY_REVISIONS_MAX
    ) -> SqliteMetadataStore:
        """Open or create; raises ``StoreUnusable``."""
        workers = ThreadWorkers("headpond-metadata", threads_max=1)
        try:
            database, state = await workers.run(_open_database, path, history_revisions_max)
        except BaseException:
            await workers.close()
            raise
        return cls(path, database, workers, clock, state)

    async def get(self, key: str) -> Entry | None:
        return await self._call(lambda: self._database.get(key))

    async def list(self, prefix: str) -> Listing:
        return await self._call(lambda: self._database.list(prefix))

    async def transact(self, compares: Sequence[Compare], writes: Iterable[Put | Delete]) -> Committed | Conflict:
        compares, writes = tuple(compares), tuple(writes)
        check_transaction(compares, writes)
        return await self._call(lambda: self._database.transact(compares, writes, self._now_ms()))

    async def watch(self, prefix: str, *, after_revision: int) -> AsyncIterator[Changes]:
        watcher = Watcher(prefix, after_revision=after_revision)

        def start(past: Sequence[Changes]) -> None:
            for changes in past:
                watcher.offer(changes)
            self._hub.add(watcher)

        try:
            await self._call(lambda: self._database.changes_after(after_revision), start)
            while (changes := await watcher.next()) is not None:
                yield changes
        finally:
            self._hub.remove(watcher)

    async def grant_lease(self, ttl_ms: int) -> int:
        return await self._call(lambda: self._database.grant_lease(ttl_ms, self._now_ms()))

    async def keep_lease(self, lease: int) -> bool:
        return await self._call(lambda: self._database.keep_lease(lease, self._now_ms()))

    async def revoke_lease(self, lease: int) -> None:
        await self._call(lambda: self._database.revoke_lease(lease))

    async def close(self) -> None:
        """Calls under way are answered; watches end. Closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._hub.close()
        await self._workers.run(self._database.close)
        await self._workers.close()

    # --- between the loop and the thread ------------------------------------------------------------------------------

    def _call(self, job: Callable[[], T], on_loop: Callable[[T], None] | None = None) -> asyncio.Future[T]:
        """Run ``job`` in the store's thread. On the loop, in this order and without a gap: ``on_loop`` sees the result,
        the watchers get what is new in the history, the caller goes on."""
        if self._closed:
            raise RuntimeError("the metadata store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def work() -> tuple[T | BaseException, bool, _News]:
            try:
                result: T | BaseException = job()
                failed = False
            except Exception as error:
                result, failed = error, True
            return result, failed, self._look()

        def done(answer: tuple[T | BaseException, bool, _News] | None, error: BaseException | None) -> None:
            if answer is None:
                result: T | BaseException | None = error
                failed = True
            else:
                result, failed, news = answer
                if not failed and on_loop is not None:
                    on_loop(result)  # type: ignore[arg-type]
                self._tell(news)
            if future.done():
                return
            if failed:
                assert isinstance(result, BaseException)
                future.set_exception(result)
            else:
                future.set_result(result)  # type: ignore[arg-type]

        self._workers.submit(work, done)
        return future

    def _look(self) -> _News:
        """In the thread: what nobody has been told yet, other processes' commits included."""
        try:
            revisions = self._database.changes_after(self._told_up_to_revision)
        except HistoryLost as lost:
            self._told_up_to_revision = self._database.state().revision
            return _News(gap=str(lost))
        except Exception as error:  # the disk fails: whoever calls next is told; watchers have nothing to miss
            return _News(gap=str(error))
        if revisions:
            self._told_up_to_revision = revisions[-1].revision
        return _News(revisions)

    def _tell(self, news: _News) -> None:
        if news.gap is not None:
            self._hub.lose(news.gap)
        else:
            self._hub.deliver(news.revisions)

    # --- other processes' commits, and leases that run out ------------------------------------------------------------

    def _plan_look(self) -> None:
        if not self._closed:
            self._timer = self._clock.call_later(POLL_EVERY_S, self._poll)

    def _poll(self) -> None:
        if self._closed:
            return
        facts = _facts(self._log_path)
        self._polls_without_look += 1
        expires = self._next_expiry_ms is not None and self._next_expiry_ms <= self._now_ms()
        if expires or facts != self._log_facts or self._polls_without_look >= LOOK_AT_LEAST_EVERY:
            self._log_facts = facts
            self._polls_without_look = 0
            self._workers.submit(self._look_around, self._looked_around)
        else:
            self._plan_look()

    def _look_around(self) -> tuple[int | None, _News]:
        """In the thread."""
        state = self._database.state()
        if state.next_expiry_ms is not None and state.next_expiry_ms <= self._now_ms():
            self._database.expire(self._now_ms())
            state = self._database.state()
        return state.next_expiry_ms, _News() if state.revision == self._told_up_to_revision else self._look()

    def _looked_around(self, found: tuple[int | None, _News] | None, error: BaseException | None) -> None:
        if found is not None:  # else the disk fails: whoever calls next is told
            self._next_expiry_ms, news = found
            self._tell(news)
        self._plan_look()

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1_000)


def _open_database(path: str, history_revisions_max: int) -> tuple[Database, State]:
    database = Database(path, history_revisions_max=history_revisions_max)
    return database, database.state()


def _facts(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
