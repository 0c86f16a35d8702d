"""An event loop in a thread of its own, for callers that are not asynchronous: its work goes on between their calls.

Promises    ``call`` returns what the coroutine returns and raises what it raises. After a ``TimeoutError`` the
            coroutine was cancelled, and has ended. ``close`` may be called twice, and never waits for work that is
            left: whoever started it ends it first. The thread dies with the process.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from headpond.runtime.process import loop_factory

T = TypeVar("T")

CANCELLED_S_MAX = 10.0
"""How long a cancelled coroutine may take to clear up."""


class LoopThread:
    def __init__(self, name: str) -> None:
        self._loop = loop_factory()()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    @property
    def is_here(self) -> bool:
        """Whether this is the thread itself, which must not wait for its own loop."""
        return threading.get_ident() == self._thread.ident

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()  # the loop is closed already; or Python warns that it was never awaited
            raise
        try:
            return future.result(timeout_s)
        except concurrent.futures.CancelledError:
            raise RuntimeError("the loop was closed under this call") from None
        except BaseException:
            if not future.done():  # time is up, or Ctrl-C
                future.cancel()
                concurrent.futures.wait([future], CANCELLED_S_MAX)
            raise

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """From any thread, and not waited for."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        """From any thread: in the loop's next turn, and not waited for. ``RuntimeError``: the loop is closed."""
        self._loop.call_soon_threadsafe(callback, *arguments)

    def end_soon(self) -> None:
        """``close`` for the thread itself, which can't wait for its own end."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def close(self) -> None:
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # another thread has closed it just now
                self.end_soon()
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
