"""What the models of a log share: a loop of their own, and the rules of housework, restarts, kills and power cuts."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from penstock.storage.log import PartitionLog
from simulation.harness.clock import ManualClock
from unit.storage.storage_rig import Rig

T = TypeVar("T")


class StorageModel(RuleBasedStateMachine):
    """``open_with`` is the subclass's first rule to call; ``found_again`` is called after every restart."""

    def __init__(self) -> None:
        super().__init__()
        logging.disable(logging.WARNING)
        self.loop = asyncio.new_event_loop()
        self.flushed_end_offset = 0
        self.number = 0  # tells what was appended apart
        self.rig: Rig
        self.log: PartitionLog

    def teardown(self) -> None:
        self.run(self.rig.tasks.cancel_all())
        self.loop.close()
        logging.disable(logging.NOTSET)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def open_with(self, **options: Any) -> None:
        async def start() -> None:
            self.rig = Rig(**options)
            self.log = await self.rig.open()

        self.run(start())

    def found_again(self, *, all_of_it: bool) -> None:
        """The log was opened anew; ``all_of_it``: nothing may be missing."""
        raise NotImplementedError

    @rule()
    def roll(self) -> None:
        self.run(self.log.roll())

    @rule()
    def checkpoint(self) -> None:
        self.run(self.rig.checkpoint())
        self.flushed_end_offset = self.log.flushed_end_offset

    @rule()
    def restart_cleanly(self) -> None:
        async def restart() -> None:
            await self.rig.close()
            self.log = await self.rig.open()

        self.run(restart())
        self._check_end(all_of_it=True)

    @rule()
    def kill(self) -> None:
        async def restart() -> None:
            await self.rig.die()
            await self._open_anew()

        self.run(restart())
        self._check_end(all_of_it=True)

    @rule(seed=st.integers(0, 1 << 30))
    def cut_power(self, seed: int) -> None:
        async def restart() -> None:
            await self.rig.tasks.cancel_all()
            self.rig.disk.power_cut(random.Random(seed))
            await self._open_anew()

        self.run(restart())
        self._check_end(all_of_it=False)

    async def _open_anew(self) -> None:
        """With a clock of its own: the dead process's timers must not go off in this one."""
        clock = ManualClock(self.rig.clock.now_ms())
        self.rig = Rig(self.rig.disk, config=self.rig.config, storage=self.rig.storage, clock=clock)
        self.log = await self.rig.open()

    def _check_end(self, *, all_of_it: bool) -> None:
        assert self.log.log_end_offset >= self.flushed_end_offset
        self.found_again(all_of_it=all_of_it)
        self.flushed_end_offset = self.log.log_end_offset


def model_settings(examples: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
