"""Looks into records: work whose cost the client chooses. It shares no thread with syncs, rolls and cold reads.

A batch of a few kilobytes may hold millions of records, and what finds one by time, or checks them all, goes through
them in Python. So such work has threads of its own (the port ``lookers``), which it gets in turns:

    turn        a piece of at most TURN_RECORDS and TURN_BYTES, in a thread; after it the next request has its turn
    at length   a batch that does not fit into a turn, in a process: it holds neither a thread nor the interpreter

Fair        A client has one turn at a time, and one job at length; clients take turns. Small requests never wait for
            jobs at length, and those only for one another.
Bounded     What one request wants may take LOOK_S_MAX, the waiting included; then it is answered REQUEST_TIMED_OUT.
            When the client is gone it is given up, while it waits and a job at length in the middle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from typing import Any, Protocol, TypeVar

from headpond.model import BrokerError, ErrorCode, StorageFailed
from headpond.ports import Clock, FileSystem, Processes, ProcessLost, Tasks, TimerHandle, Workers
from headpond.protocol.records.header import BatchHeader
from headpond.storage.looks.queue import LookQueue

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
LOOK_S_MAX = 25.0
"""Less than clients wait for an answer (30 s by default): what was found until then reaches them."""
WATCH_S = 0.25
"""How often it is checked whether the client of a job at length is still there."""


class Asker(Protocol):
    """Whose request it is: a connection."""

    @property
    def closed(self) -> bool: ...


class LookGivenUp(BrokerError):
    """It took too long, or its client is gone."""

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
        self.turns = LookQueue(TURNS_AT_ONCE, clock)
        self.jobs = LookQueue(JOBS_AT_ONCE if processes is not None else 1, clock)

    def begin(self, asker: Asker | None) -> Look:
        """What one request wants. None: it is the broker's own."""
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
        self.by: object = asker if asker is not None else self
        self.deadline_s = looks.clock.monotonic() + LOOK_S_MAX

    async def turn(self, function: Callable[..., T], *arguments: Any) -> T:
        """``function(*arguments)`` in a thread; it takes no longer than a turn. Raises ``LookGivenUp``."""
        async with self._looks.turns.place(self):
            return await self._looks.run_turn(function, *arguments)

    async def at_length(self, function: Callable[..., T], *arguments: Any) -> T:
        """``function(fs, *arguments)`` in a process; everything has to be picklable. Raises ``LookGivenUp``, and
        ``StorageFailed`` when the process dies."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                async with self._looks.jobs.place(self):
                    with closing(_Watch(self, done)):
                        result = await self._looks.run_job(function, *arguments)
            except Exception as error:
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        job = self._looks.tasks.spawn("look into records", run())
        try:
            return await done
        finally:
            job.cancel()  # its answer is not wanted any more

    def go_on(self) -> None:
        """Raises ``LookGivenUp`` when nobody waits for it any more."""
        if (over := self.why_over) is not None:
            raise over

    @property
    def why_over(self) -> LookGivenUp | None:
        if self._asker is not None and self._asker.closed:
            return LookGivenUp(message="the client left before its records were looked at")
        return self.timed_out() if self.clock.monotonic() >= self.deadline_s else None

    def timed_out(self) -> LookGivenUp:
        return LookGivenUp(message=f"to look into records took longer than {LOOK_S_MAX:.0f} s")


class _Watch:
    """Gives up on a job when its look is over."""

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

    def close(self) -> None:
        self._timer.cancel()


def _in_one_step(fs: FileSystem, function: Callable[..., T], *arguments: Any) -> Iterator[T]:
    yield function(fs, *arguments)
