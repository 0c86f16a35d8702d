"""``ports.Processes`` without processes: each step of a job runs inline as a worker's job, its answer comes later.

Steps and arguments go through pickle, as over a real pipe: what can't cross it fails here, too.
"""

from __future__ import annotations

import pickle
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any, TypeVar

from headpond.ports import Clock, FileSystem, ProcessLost
from simulation.harness.workers import SimulatedWorkers

T = TypeVar("T")
_END = object()


class SimulatedProcesses:
    """``steps_until_death``: so many steps from now on, then the process dies once."""

    def __init__(self, fs: FileSystem, clock: Clock) -> None:
        self._fs = fs
        self._workers = SimulatedWorkers(clock)
        self.steps_until_death: int | None = None
        self.jobs = 0

    async def steps(self, function: Callable[..., Iterator[T]], *arguments: Any) -> AsyncGenerator[T, None]:
        self.jobs += 1
        function, arguments = pickle.loads(pickle.dumps((function, arguments)))
        job = await self._workers.run(lambda: iter(function(self._fs, *arguments)))
        try:
            while True:
                if self.steps_until_death is not None:
                    self.steps_until_death -= 1
                    if self.steps_until_death < 0:
                        self.steps_until_death = None
                        raise ProcessLost("it was ended by signal 9")
                step = await self._workers.run(next, job, _END)
                if step is _END:
                    return
                yield pickle.loads(pickle.dumps(step))
        finally:
            # A killed process closes its files and does nothing else; closing the generator here does the same.
            close = getattr(job, "close", None)
            if close is not None:
                await self._workers.run(close)
