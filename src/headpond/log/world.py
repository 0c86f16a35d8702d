"""What a log of the library runs in: the machine, or (in tests) a simulated disk.

Made and closed on the log's own loop.
"""

from __future__ import annotations

from typing import Protocol

from headpond.runtime.clock import SystemClock
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.processes import WorkerProcesses
from headpond.runtime.random import SystemRandom
from headpond.runtime.tasks import LoopTasks
from headpond.runtime.workers import ThreadWorkers
from headpond.storage.ports import StoragePorts


class World(Protocol):
    ports: StoragePorts

    async def close(self) -> None:
        """Everything has ended: no thread and no process is left."""


class Machine:
    """``World`` with the real adapters. Threads and processes begin when there is work for them."""

    def __init__(self) -> None:
        self._workers = ThreadWorkers("headpond-log-worker")
        self._processes = WorkerProcesses()
        self._tasks = LoopTasks()
        self.ports = StoragePorts(
            fs=DiskFileSystem(),
            clock=SystemClock(),
            workers=self._workers,
            tasks=self._tasks,
            random=SystemRandom(),
            processes=self._processes,
        )

    async def close(self) -> None:
        await self._tasks.cancel_all()
        await self._processes.close()
        await self._workers.close()
