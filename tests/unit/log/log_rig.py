"""Logs of the library on a simulated disk, and their death."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from headpond.log import Log
from headpond.log.opening import open_in
from headpond.log.settings import LogSettings
from headpond.runtime.tasks import LoopTasks
from headpond.storage.ports import StoragePorts
from simulation.harness.chance import SeededRandom
from simulation.harness.clock import ManualClock
from simulation.harness.disk import SimulatedDisk
from simulation.harness.processes import SimulatedProcesses
from simulation.harness.workers import SimulatedWorkers

PATH = "/orders"
SEGMENT = f"{PATH}/orders-0/00000000000000000000.log"
NOW_MS = 1_700_000_000_000
SMALL = LogSettings(segment_bytes=1_024, index_interval_bytes=100, flush="ack", retention_ms=None, retention_bytes=None)


class SimulatedWorld:
    def __init__(self, disk: SimulatedDisk, clock: ManualClock) -> None:
        self.tasks = LoopTasks()
        self.ports = StoragePorts(
            fs=disk,
            clock=clock,
            workers=SimulatedWorkers(clock),
            tasks=self.tasks,
            random=SeededRandom(),
            processes=SimulatedProcesses(disk, clock),
        )

    async def close(self) -> None:
        await self.tasks.cancel_all()


class LogRig:
    """Opens one log after the other on one disk."""

    def __init__(self, settings: LogSettings = SMALL, **changes: Any) -> None:
        self.settings = settings._replace(**changes)
        self.now_ms = NOW_MS
        self.disk = SimulatedDisk(now_ms=lambda: self.now_ms)
        self.log: Log
        self.shown: list[tuple[int, int]] = []
        self.clock: ManualClock

    def open(self) -> Log:
        self.clock = ManualClock(self.now_ms)  # the timers of a dead process must not go off in the next one
        self.log = open_in(lambda: SimulatedWorld(self.disk, self.clock), PATH, None, self.settings)
        self.shown = []
        visible = self.log._engine.visible
        tell = visible.on_change

        def note() -> None:
            self.shown.append((len(self.disk.trace), visible.view.end_offset))
            tell()

        visible.on_change = note
        return self.log

    def shown_by(self, operations: int) -> int:
        """Which end the log had shown, and told, when the disk had done so many operations."""
        return max([end_offset for at, end_offset in self.shown if at <= operations], default=0)

    def on_loop(self, work: Callable[[], object]) -> None:
        async def run() -> None:
            work()

        self.log._call(run())

    def die(self, how: Callable[[SimulatedDisk], object] = SimulatedDisk.kill) -> None:
        """kill -9, or what ``how`` does to the disk: nothing is tidied up."""
        engine, thread = self.log._engine, self.log._thread
        logging.disable(logging.CRITICAL)
        try:
            thread.call(engine._world.close())
            self.log.disown()
            self.log._forget()
            thread.close()
            how(self.disk)
            engine.visible.end()
        finally:
            logging.disable(logging.NOTSET)
