"""What a broker's coordinators share: a machine for each partition of an internal topic that this broker leads.

Follows the leadership of those partitions (``replicas``). What a crash does: see ``coordination.runtime``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from headpond.broker.coordinators.home import InternalTopic
from headpond.broker.coordinators.internal_topic import CoordinatorTopic, TopicShape
from headpond.broker.replicas.replicas import Replicas
from headpond.cluster.image import MetadataImage
from headpond.cluster.metadata_writer import MetadataWriter
from headpond.coordination.records import RecordCodec
from headpond.coordination.runtime import CoordinatorRuntime, Decision, Machine
from headpond.coordination.slices import Slices, Work
from headpond.ports import Clock, Random, Tasks

STOP_WAIT_S = 2.0
STOP_STEP_S = 0.002
"""A stop waits this long at most for what is being written, and looks this often."""

A = TypeVar("A")
M = TypeVar("M", bound=Machine)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every coordinator of a broker works with. ``slices``: shared with others whose work takes long."""

    image: MetadataImage
    metadata_writer: MetadataWriter
    replicas: Replicas
    clock: Clock
    random: Random
    tasks: Tasks
    slices: Slices


class Coordinator(Generic[M]):
    """``key``, in what handlers call: the group's id, or the transactional id."""

    def __init__(
        self,
        around: Surroundings,
        topic: str,
        shape: Callable[[], TopicShape],
        *,
        codec: RecordCodec,
        make_machine: Callable[[int], M],
        commit_timeout_ms: Callable[[], int] | None = None,
    ) -> None:
        """``commit_timeout_ms``: how long a request waits for its records to be committed before it is answered with
        "outcome unknown"; None: no limit."""
        self.topic = CoordinatorTopic(
            topic, shape, image=around.image, metadata_writer=around.metadata_writer, clock=around.clock
        )
        self.runtime: CoordinatorRuntime[M] = CoordinatorRuntime(
            topic,
            home=InternalTopic(topic, around.replicas, around.clock, commit_timeout_ms=commit_timeout_ms),
            codec=codec,
            make_machine=make_machine,
            partition_count=lambda: self.topic.partition_count,
            clock=around.clock,
            tasks=around.tasks,
        )
        self.slices = around.slices
        self._clock = around.clock
        self._tasks = around.tasks
        self._under_way = 0
        around.replicas.tell_leadership(topic, self.runtime)

    async def write(self, key: str, decide: Callable[[M], Decision[A]]) -> A:
        """Raises ``BrokerError``: what ``decide`` raised, or that this broker can't answer for the key now."""
        self._under_way += 1
        try:
            return await self.runtime.write(key, decide)
        finally:
            self._under_way -= 1

    def read(self, key: str, look: Callable[[M], A]) -> A:
        return self.runtime.read(key, look)

    def in_slices(self, what: str, work: Work[A], done: Callable[[A], None]) -> None:
        """``coordination.slices.InSlices``, by a task of its own."""

        async def finish() -> None:
            done(await self.slices.finish(work))

        self._tasks.spawn(what, finish())

    async def stop(self) -> None:
        """What is being written is answered; who waits for others is told to look for another coordinator."""
        deadline = self._clock.monotonic() + STOP_WAIT_S
        while self._under_way and self._clock.monotonic() < deadline:
            await self._clock.sleep(STOP_STEP_S)
        for partition in range(self.topic.partition_count or 0):
            self.runtime.resign(partition)
