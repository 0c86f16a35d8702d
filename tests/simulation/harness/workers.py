"""``ports.Workers`` without threads: a job runs at once or a little later, its answer comes later still.

Between the job and its answer lies at least one turn of the loop, and ``delay_s()`` seconds of the clock: code that
takes a worker's answer for immediate breaks here, as it would with threads. A job that begins later finds what the loop
has done meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from headpond.ports import Clock

T = TypeVar("T")
_depth = 0


def inside_worker() -> bool:
    """Whether the code that asks runs as a worker's job."""
    return _depth > 0


class SimulatedWorkers:
    """Answers in the order of submission when delays are equal."""

    def __init__(
        self,
        clock: Clock,
        delay_s: Callable[[], float] = lambda: 0.0,
        begins_after_s: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._delay_s = delay_s
        self._begins_after_s = begins_after_s

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
        after_s = 0.0 if self._begins_after_s is None else self._begins_after_s()
        if after_s > 0:
            self._clock.call_later(after_s, lambda: self._work(function, done))
        else:
            self._work(function, done)

    def _work(self, function: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        global _depth
        result: T | None = None
        error: BaseException | None = None
        _depth += 1
        try:
            result = function()
        except Exception as caught:
            error = caught
        finally:
            _depth -= 1
        delay_s = self._delay_s()
        if delay_s > 0:
            self._clock.call_later(delay_s, lambda: done(result, error))
        else:  # a manual clock would let a timer of zero seconds wait for its next move
            asyncio.get_running_loop().call_soon(done, result, error)
