"""The owner of every task.

Promises    A task that was spawned stays referenced until it ends, has a name, and its failure is reported once, also
            when nobody awaits it. ``cancel_all`` returns when all have ended; nothing new starts after it was called.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

_log = logging.getLogger("headpond.tasks")


def _log_failure(name: str, error: BaseException) -> None:
    _log.error("task %s failed", name, exc_info=error)


class LoopTasks:
    """``ports.Tasks`` on the running loop. ``on_failure(name, error)`` is called on the loop for each task that fails;
    the default logs it."""

    def __init__(self, on_failure: Callable[[str, BaseException], None] = _log_failure) -> None:
        self._on_failure = on_failure
        self._tasks: dict[asyncio.Task[None], None] = {}  # a dict keeps the order of creation; a set has none
        self._closing = False

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if self._closing:
            coroutine.close()  # or Python warns that it was never awaited
            raise RuntimeError(f"no task {name}: shutting down")
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    async def cancel_all(self) -> None:
        """Cancel in the reverse order of creation and wait. The task that calls this is spared."""
        self._closing = True
        own = asyncio.current_task()
        while tasks := [task for task in reversed(self._tasks) if task is not own]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._on_failure(task.get_name(), error)
