"""Looks into records: work whose cost the client chooses. It shares no thread with syncs, rolls and cold reads.

A batch of a few kilobytes may hold millions of records, and what finds one by time, or checks them all, goes through
them in Python. So such work has threads of its own (the port ``lookers``), which it gets in turns:

    turn        a piece of at most TURN_RECORDS and TURN_BYTES, in a thread; after it the next request has its turn
    at length   a batch that does not fit into a turn, in a process: it holds neither a thread nor the interpreter

Fair        A client has one turn at a time, and one job at length; clients take turns. Small requests never wait for
            jobs at length, and those only for one another.
Bounded     What one request wants of one partition may take LOOK_S_MAX, the waiting included; then it is answered
            REQUEST_TIMED_OUT. When the client is gone it is given up, a job at length in the middle.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Protocol, TypeVar

from penstock.model import BrokerError, ErrorCode, StorageFailed
from penstock.ports import Clock, FileSystem, Processes, ProcessLost, Tasks, TimerHandle, Workers
from penstock.protocol.records.header import BatchHeader

T = TypeVar("T")

TURN_RECORDS = 20_000
"""In a turn, about: a hundredth of a second, or a tenth where a topic wants each record decoded. A batch of 1 MiB with
records of 50 bytes has as many."""
TURN_BYTES = 4 * 1024 * 1024
"""The same for a batch, on disk and inside: to allocate and to copy it holds the interpreter for some milliseconds."""
TURNS_AT_ONCE = 2
"""Threads. They compete with the loop for the interpreter, so that more would gain nothing."""
JOBS_AT_ONCE = 2
"""Processes. Each may take three times the size that a batch may have inside."""
LOOK_S_MAX = 30.0
"""As long as clients wait for an answer."""
WATCH_S = 0.25
"""How often a job at length is asked whether somebody still waits for it."""


class Asker(Protocol):
    """Whose request it is: a connection."""

    @property
    def closed(self) -> bool: ...


class LookGivenUp(BrokerError):
    """It took too long, or there is nobody to be told."""

    code = ErrorCode.REQUEST_TIMED_OUT


def fits_a_turn(header: BatchHeader) -> bool:
    """As far as a header tells: inside it may be larger than ``TURN_BYTES``."""
    return header.count <= TURN_RECORDS and header.size_bytes <= TURN_BYTES


class Looks:
    """Shared by all requests of a broker."""

    def __init__(
        self, *, lookers: Workers, processes: Processes | None, fs: FileSystem, clock: Clock, tasks: Tasks
    ) -> None:
        """Without ``processes``, jobs at length run in the threads, of which one is left for turns."""
        self._lookers = lookers
        self._processes = processes
        self._fs = fs
        self.clock = clock
        self.tasks = tasks
        self.turns = _Queue(TURNS_AT_ONCE)
        self.jobs = _Queue(JOBS_AT_ONCE if processes is not None else 1)

    def begin(self, asker: Asker | None) -> Look:
        """What one request wants of one partition. None: somebody's of their own."""
        return Look(self, asker)

    async def run_turn(self, function: Callable[..., T], *arguments: Any) -> T:
        return await self._lookers.run(function, *arguments)

    async def run_job(self, function: Callable[..., T], *arguments: Any) -> T:
        """Cancelled: the process is ended."""
        if self._processes is None:
            return await self._lookers.run(function, self._fs, *arguments)
        try:
            async with aclosing(self._processes.steps(_in_one_step, function, *arguments)) as steps:
                result: T = await anext(steps)
                async for _ in steps:  # to its end, so that the process can be used again
                    pass
                return result
        except ProcessLost as error:
            raise StorageFailed(message=f"the process that looked into records was lost: {error}") from error


class Look:
    def __init__(self, looks: Looks, asker: Asker | None) -> None:
        self._looks = looks
        self.clock = looks.clock
        self._asker = asker
        self._by = asker if asker is not None else self  # whose turn it is
        self._deadline = looks.clock.monotonic() + LOOK_S_MAX

    async def turn(self, function: Callable[..., T], *arguments: Any) -> T:
        """``function(*arguments)`` in a thread; it takes no longer than a turn. Raises ``LookGivenUp``."""
        async with self._looks.turns.place(self._by):
            self._check()
            return await self._looks.run_turn(function, *arguments)

    async def at_length(self, function: Callable[..., T], *arguments: Any) -> T:
        """``function(fs, *arguments)`` in a process; everything has to be picklable. Raises ``LookGivenUp``, and
        ``StorageFailed`` when the process dies."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                result = await self._job(function, *arguments)
            except Exception as error:
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        job = self._looks.tasks.spawn("look into records", run())
        watch = _Watch(self, done)
        try:
            return await done
        finally:
            watch.end()
            job.cancel()  # nobody waits for it any more

    async def _job(self, function: Callable[..., T], *arguments: Any) -> T:
        async with self._looks.jobs.place(self._by):
            self._check()
            return await self._looks.run_job(function, *arguments)

    def _check(self) -> None:
        if (why := self.why_over) is not None:
            raise why

    @property
    def why_over(self) -> LookGivenUp | None:
        if self._asker is not None and self._asker.closed:
            return LookGivenUp(message="the client left before its records were looked at")
        if self.clock.monotonic() >= self._deadline:
            return LookGivenUp(message=f"to look into records took longer than {LOOK_S_MAX:.0f} s")
        return None


class _Watch:
    """Ends the waiting for a job when the look is over."""

    def __init__(self, look: Look, done: asyncio.Future[T]) -> None:
        self._look = look
        self._done: asyncio.Future[Any] = done
        self._wait()

    def _wait(self) -> None:
        self._timer: TimerHandle = self._look.clock.call_later(WATCH_S, self._check)

    def _check(self) -> None:
        why = self._look.why_over
        if why is None:
            self._wait()
        elif not self._done.done():
            self._done.set_exception(why)

    def end(self) -> None:
        self._timer.cancel()


class _Queue:
    """So many places; each asker has one at a time, and they take turns."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._busy: set[object] = set()
        self._waiting: dict[object, deque[asyncio.Future[None]]] = {}  # by asker, whose turn it is first

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def place(self, asker: object) -> AsyncIterator[None]:
        if self._free and asker not in self._busy:
            self._free -= 1
            self._busy.add(asker)
        else:
            await self._wait(asker)
        try:
            yield
        finally:
            self._leave(asker)

    async def _wait(self, asker: object) -> None:
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(asker, deque()).append(called)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self._leave(asker)  # it was called at the same moment
            else:
                self._forget(asker, called)
            raise

    def _leave(self, asker: object) -> None:
        self._free += 1
        self._busy.discard(asker)
        if (line := self._waiting.pop(asker, None)) is not None:
            self._waiting[asker] = line  # behind the others
        for each in list(self._waiting):
            if each not in self._busy and (called := self._next(each)) is not None:
                self._free -= 1
                self._busy.add(each)
                called.set_result(None)
                return

    def _next(self, asker: object) -> asyncio.Future[None] | None:
        """The first of an asker's that still waits."""
        line = self._waiting.pop(asker)
        while line:
            called = line.popleft()
            if not called.done():
                if line:
                    self._waiting[asker] = line
                return called
        return None

    def _forget(self, asker: object, called: asyncio.Future[None]) -> None:
        line = self._waiting.get(asker)
        if line is not None and called in line:
            line.remove(called)
            if not line:
                del self._waiting[asker]


def _in_one_step(fs: FileSystem, function: Callable[..., T], *arguments: Any) -> Iterator[T]:
    yield function(fs, *arguments)
