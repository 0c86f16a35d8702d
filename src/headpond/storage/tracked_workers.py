"""Workers that know what is still running: files are closed only when no job can touch them any more.

A task that awaits a job may be cancelled; the job itself runs on. ``idle`` waits for the jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from headpond.ports import Workers

T = TypeVar("T")


class TrackedWorkers:
    """``ports.Workers`` around another."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._outstanding = 0
        self._waiting: list[asyncio.Future[None]] = []

    def run(self, function: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self.submit(lambda: function(*arguments), done)
        return future

    def submit(self, function: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        def finished(result: T | None, error: BaseException | None) -> None:
            self._outstanding -= 1
            try:
                done(result, error)
            finally:
                if not self._outstanding:
                    waiting, self._waiting = self._waiting, []
                    for future in waiting:
                        if not future.done():
                            future.set_result(None)

        self._workers.submit(function, finished)
        self._outstanding += 1

    async def idle(self) -> None:
        """Wait until no job runs."""
        while self._outstanding:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
