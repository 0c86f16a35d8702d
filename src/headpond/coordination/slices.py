"""Work that takes long, done a little at a time: the loop turns in between.

Work is a generator. It yields where it may pause, every few milliseconds, and returns what it has found. What it
yields, if it is not None, is a job for a worker: a function that touches nothing but what it was given, and whose
result the work goes on with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Protocol, TypeVar

from headpond.ports import Clock, Workers

PAUSE_S = 0.002
"""Between two slices: about as long as one takes, so that work which takes long has half of the loop at most."""

T = TypeVar("T")
Job = Callable[[], Any]
Work = Generator[Job | None, Any, T]


class InSlices(Protocol):
    def __call__(self, what: str, work: Work[T], done: Callable[[T], None]) -> None:
        """``done`` is given what the work has found, now or later."""


class Finish(Protocol):
    """Does work that takes long, with pauses between its slices, and returns what it has found."""

    def __call__(self, work: Work[T]) -> Awaitable[T]: ...


class Slices:
    """One slice at a time, whoever's work it is part of: much of it holds the loop for no longer than little does, and
    what is small does not wait for the end of what is large. Jobs wait for one another, slices do not wait for jobs."""

    def __init__(self, clock: Clock, workers: Workers) -> None:
        self._clock = clock
        self._workers = workers
        self._one_at_a_time = asyncio.Lock()
        self._one_job_at_a_time = asyncio.Lock()

    async def finish(self, work: Work[T]) -> T:
        result = None
        while True:
            async with self._one_at_a_time:  # first come, first served: everybody's next slice is behind all others'
                try:
                    job = work.send(result)
                except StopIteration as finished:
                    return finished.value  # type: ignore[no-any-return]
                result = None
                if job is None:
                    await self._clock.sleep(PAUSE_S)
            if job is not None:
                async with self._one_job_at_a_time:
                    result = await self._workers.run(job)

    async def turn(self) -> None:
        """For work that is no generator: waits until it may do its next slice."""
        async with self._one_at_a_time:
            await self._clock.sleep(PAUSE_S)


def at_once(what: str, work: Work[T], done: Callable[[T], None]) -> None:
    """``InSlices`` for those who have no loop to hold."""
    done(finish_now(work))


def in_one_slice(find: Callable[[], T]) -> Work[T]:
    """For what never takes long."""
    return find()
    yield


def finish_now(work: Work[T]) -> T:
    result = None
    while True:
        try:
            job = work.send(result)
        except StopIteration as finished:
            return finished.value  # type: ignore[no-any-return]
        result = None if job is None else job()


def while_wanted(work: Work[T], is_wanted: Callable[[], bool]) -> Work[T | None]:
    """None: it was given up, in a pause."""
    result = None
    while True:
        try:
            job = work.send(result)
        except StopIteration as finished:
            return finished.value  # type: ignore[no-any-return]
        result = yield job
        if not is_wanted():
            return None
