"""What the models of a log share: a loop of their own, and the rules of housework, restarts, kills and power cuts.

A process dies between two rules, or in the middle of a checkpoint or a roll. What is looked at first after a start, and
in which order, is for the subclass to draw (``LOOKS``): a look may hide what the next one would have seen.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Coroutine
from typing import Any, NamedTuple, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.commit import checkpoint_rounds
from headpond.storage.commit.group_commit import SYNC_ALL_FROM_LOGS
from headpond.storage.log.log import PartitionLog
from headpond.storage.recovery import index_files
from simulation.harness.clock import ManualClock
from unit.storage.storage_rig import Rig

T = TypeVar("T")
READ, SEEK, RETAIN = "read", "seek by time", "retention by time"
LOOKS = st.permutations([READ, SEEK, RETAIN])


class Death(NamedTuple):
    """In the middle of a roll, a checkpoint, or both, after so many operations of the disk (counted on from the first
    when there are fewer); with a seed it is a power cut's."""

    rolls: bool
    checkpoints: bool
    operations: int
    seed: int | None
    looks: list[str]


DEATHS = st.builds(
    Death, st.booleans(), st.booleans(), st.integers(0, 40), st.none() | st.integers(0, 1 << 30), looks=LOOKS
)
_REAL_BOUNDS = index_files.INDEX_LAG_BYTES, log_checkpoint.SNAPSHOT_BYTES


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
        index_files.INDEX_LAG_BYTES, log_checkpoint.SNAPSHOT_BYTES = _REAL_BOUNDS
        checkpoint_rounds.SYNC_ALL_FROM_LOGS = SYNC_ALL_FROM_LOGS
        if hasattr(self, "rig"):
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

    def look_around(self, looks: list[str]) -> None:
        """The log was opened anew: whatever is looked at, in this order, is as it should be."""

    @initialize(
        lag_bytes=st.sampled_from([1, 150, 300]), snapshot_bytes=st.sampled_from([50, 500]), syncs_all=st.booleans()
    )
    def scale(self, lag_bytes: int, snapshot_bytes: int, syncs_all: bool) -> None:
        """Bounds for logs of some hundred bytes: with the real ones recovery would read them from their start, and
        believe nothing. The files of a checkpoint are synced one by one, or all at once."""
        index_files.INDEX_LAG_BYTES = lag_bytes
        log_checkpoint.SNAPSHOT_BYTES = snapshot_bytes
        checkpoint_rounds.SYNC_ALL_FROM_LOGS = 1 if syncs_all else SYNC_ALL_FROM_LOGS

    @rule()
    def roll(self) -> None:
        self.run(self.log.roll())

    @rule()
    def checkpoint(self) -> None:
        self.run(self.rig.checkpoint())
        self.flushed_end_offset = self.log.flushed_end_offset

    @rule(looks=LOOKS)
    def restart_cleanly(self, looks: list[str]) -> None:
        async def restart() -> None:
            await self.rig.close()
            self.log = await self.rig.open()

        self.run(restart())
        self._check_end(looks, all_of_it=True)

    @rule(looks=LOOKS)
    def kill(self, looks: list[str]) -> None:
        async def restart() -> None:
            await self.rig.die()
            await self._open_anew()

        self.run(restart())
        self._check_end(looks, all_of_it=True)

    @rule(death=DEATHS)
    def die_in_the_middle(self, death: Death) -> None:
        async def restart() -> None:
            disk = self.rig.disk
            start = len(disk.trace)
            if death.rolls:
                await self.log.roll()
            if death.checkpoints:
                await self.rig.checkpoint()
            await self.rig.tasks.cancel_all()
            disk.kill_back_at(start + death.operations % (len(disk.trace) - start + 1))
            if death.seed is not None:
                disk.power_cut(random.Random(death.seed))
            await self._open_anew()

        self.run(restart())
        self._check_end(death.looks, all_of_it=death.seed is None)

    @rule(seed=st.integers(0, 1 << 30), looks=LOOKS)
    def cut_power(self, seed: int, looks: list[str]) -> None:
        async def restart() -> None:
            await self.rig.tasks.cancel_all()
            self.rig.disk.power_cut(random.Random(seed))
            await self._open_anew()

        self.run(restart())
        self._check_end(looks, all_of_it=False)

    async def _open_anew(self) -> None:
        """With a clock of its own: the dead process's timers must not go off in this one."""
        clock = ManualClock(self.rig.clock.now_ms())
        self.rig = Rig(self.rig.disk, config=self.rig.config, storage=self.rig.storage, clock=clock)
        self.log = await self.rig.open()

    def _check_end(self, looks: list[str], *, all_of_it: bool) -> None:
        assert self.log.log_end_offset >= self.flushed_end_offset
        self.found_again(all_of_it=all_of_it)
        self.flushed_end_offset = self.log.log_end_offset
        self.look_around(looks)


def model_settings(examples: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
