"""The groups that this broker coordinates: one machine for each partition of ``__consumer_offsets`` that it leads.

Follows the metadata: a deleted topic takes its offsets along, a new or larger one concerns its subscribers.

What a crash does: offsets and groups come back from the log; whoever was waiting in a rebalance joins again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from headpond.broker.coordinators.coordinator import Coordinator, Surroundings
from headpond.broker.coordinators.internal_topic import TopicShape
from headpond.cluster.delta import Delta
from headpond.cluster.names import OFFSETS_TOPIC
from headpond.config.groups import GroupSettings
from headpond.coordination.groups.consumer import ImageTopics
from headpond.coordination.groups.machine import GroupMachine
from headpond.coordination.groups.meters import GroupMeters
from headpond.coordination.groups.stored_types import GROUP_CODEC
from headpond.coordination.runtime import Decision
from headpond.coordination.slices import Finish, Work
from headpond.model import BrokerError

A = TypeVar("A")


class GroupCoordinator(Coordinator[GroupMachine]):
    def __init__(self, around: Surroundings, settings: Callable[[], GroupSettings]) -> None:
        self._image = around.image
        self._random = around.random
        self._broker_settings = settings
        self._settings = settings()
        self._settings_of: tuple[GroupSettings, int] | None = None
        self._topics = ImageTopics(around.image)
        self._parked = 0
        self.meters = GroupMeters()
        super().__init__(
            around,
            OFFSETS_TOPIC,
            lambda: _shape(settings()),
            codec=GROUP_CODEC,
            make_machine=self._make_machine,
            commit_timeout_ms=lambda: settings().commit_timeout_ms,
        )

    def settings(self) -> GroupSettings:
        """What holds now, the groups' own times included."""
        of_broker, revision = self._broker_settings(), self._image.revision
        if self._settings_of is None or self._settings_of[0] is not of_broker or self._settings_of[1] != revision:
            image = self._image
            self._settings = of_broker.with_times(
                {name: image.configs("group", name) for name in image.configured("group")}
            )
            self._settings_of = of_broker, revision
        return self._settings

    # --- what handlers call

    def write_now(
        self,
        group_id: str,
        decide: Callable[[GroupMachine], Decision[A]],
        done: Callable[[A | None, BrokerError | None], None],
    ) -> bool:
        """Without a task: see the runtime's."""

        def finished(answer: A | None, failed: BrokerError | None) -> None:
            self._under_way -= 1
            done(answer, failed)

        self._under_way += 1
        if self.runtime.write_now(group_id, decide, finished):
            return True
        self._under_way -= 1
        return False

    async def settled(self, group_id: str, look: Callable[[GroupMachine], Work[A]], finish: Finish) -> A:
        """What ``look`` finds, once it is committed."""
        self._under_way += 1
        try:
            return await self.runtime.settled(group_id, look, finish)
        finally:
            self._under_way -= 1

    async def parked(self, group_id: str, decide: Callable[[GroupMachine, Callable[[A], None]], Decision[None]]) -> A:
        """For requests that are answered later: ``decide`` is given what to call with the answer. Raises as
        ``write`` does, if that comes first."""
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()

        def reply(response: A) -> None:
            if not answer.done():
                answer.set_result(response)

        self._parked += 1
        try:
            await self.write(group_id, lambda machine: decide(machine, reply))
            return await answer
        finally:
            self._parked -= 1

    # --- following the metadata

    def image_changed(self, delta: Delta) -> None:
        deleted = [name for name, _ in delta.topics_deleted]
        changed = sorted({change.topic for change in delta.partitions if _is_of_interest(change.before, change.after)})
        if deleted or changed:
            for machine in self.runtime.machines():
                if deleted:
                    machine.forget_topics(deleted)
                machine.topics_changed(changed)

    # --- the end

    @property
    def is_answering(self) -> bool:
        """Somebody's answer is about to leave."""
        return self._under_way > 0 or self._parked > 0

    # --- inside

    def _make_machine(self, partition: int) -> GroupMachine:
        return GroupMachine(
            settings=self.settings,
            clock=self._clock,
            random=self._random,
            write_soon=lambda what, decide: self.runtime.write_soon(partition, what, decide),
            topics=lambda: self._topics,
            meters=self.meters,
            in_slices=self.in_slices,
        )


def _shape(settings: GroupSettings) -> TopicShape:
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(settings.topic_segment_bytes),
    }
    return TopicShape(settings.topic_partitions, settings.topic_replication_factor, configs)


def _is_of_interest(before: object | None, after: object | None) -> bool:
    """A partition that appeared or went; who leads it does not matter to groups."""
    return (before is None) != (after is None)
