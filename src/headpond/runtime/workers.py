"""Threads for what blocks.

Promises    ``run`` and ``submit`` are called on the loop and answer on the loop; jobs start in the order given. A job
            that was accepted ends, also during ``close``. Threads start when there is work for them, so that an idle
            broker has none, and are daemons, so that one stuck in a dead disk can't keep the process from ending.
Latency     A finished job goes into a deque; the loop is woken once per burst, however many jobs end meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from headpond.model import invariant

T = TypeVar("T")
_Done = Callable[[Any, BaseException | None], None]
_Job = tuple[Callable[..., Any], tuple[Any, ...], _Done]

# Enough to keep a disk's queue busy with a few fsyncs and cold reads; more threads only fight over the interpreter.
THREADS_DEFAULT = 6


class ThreadWorkers:
    """``ports.Workers`` on a small pool. Use from one loop's thread only."""

    def __init__(self, name: str = "headpond-worker", threads_max: int = THREADS_DEFAULT) -> None:
        invariant(threads_max > 0, "a pool needs a thread", threads_max)
        self._name = name
        self._threads_max = threads_max
        self._threads: list[threading.Thread] = []
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._finished: deque[tuple[_Done, Any, BaseException | None]] = deque()
        self._wake_is_due = False
        self._outstanding = 0  # accepted and not yet answered; touched on the loop only
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._idle: asyncio.Future[None] | None = None  # what close() waits for

    def run(self, function: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        """The job's result, as a future. Cancelling it forgets the answer, not the job: what runs, runs to its end."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(result: T, error: BaseException | None) -> None:
            if future.done():  # cancelled meanwhile
                return
            if error is None:
                future.set_result(result)
            elif isinstance(error, StopIteration):  # futures refuse it
                future.set_exception(RuntimeError(f"a job raised {error!r}"))
            else:
                future.set_exception(error)

        self._accept((function, arguments, done))
        return future

    def submit(self, function: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self._accept((function, (), done))

    async def close(self) -> None:
        """Refuse new jobs, finish and answer the accepted ones, end the threads. Closing twice does nothing."""
        self._closed = True
        if self._outstanding:
            if self._idle is None:
                self._idle = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._idle)
        threads, self._threads = self._threads, []
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:  # each has nothing left to do but to see its None
            thread.join()

    def _accept(self, job: _Job) -> None:
        if self._closed:
            raise RuntimeError(f"{self._name}: closed, takes no more jobs")
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._outstanding += 1
        if self._outstanding > len(self._threads) < self._threads_max:
            self._start_thread()
        self._jobs.put(job)

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _work(self) -> None:
        """A thread's life. Without locks: appending first and looking at the flag second can't lose a wake-up, because
        the loop clears the flag first and empties the deque second; at worst it is woken once too often."""
        take = self._jobs.get
        finish = self._finished.append
        while (job := take()) is not None:
            function, arguments, done = job
            try:
                result, error = function(*arguments), None
            except BaseException as caught:
                result, error = None, caught
            finish((done, result, error))
            del job, function, arguments, done, result, error  # an idle thread keeps nothing alive
            if not self._wake_is_due:
                self._wake_is_due = True
                self._wake_loop()

    def _wake_loop(self) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:
            pass  # the loop was closed under us: nobody is left to be told

    def _answer(self) -> None:
        """On the loop: tell everybody whose job is done. One caller's bug must not cost the others their answer."""
        self._wake_is_due = False
        finished = self._finished
        while finished:
            done, result, error = finished.popleft()
            self._outstanding -= 1
            try:
                done(result, error)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as caught:
                assert self._loop is not None
                self._loop.call_exception_handler(
                    {"message": f"{self._name}: the callback of a finished job failed", "exception": caught}
                )
        if self._idle is not None and not self._outstanding and not self._idle.done():
            self._idle.set_result(None)
