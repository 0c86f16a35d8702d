"""The partitions that this broker holds, and who waits at each of them.

Follows the metadata image: a partition that appears gets its log (no file until its first append), one that goes
fails its waiters and has its folder deleted. ``generation`` grows whenever a name may have come to mean something
else, so that what connections remember about topics (and their settings) can be checked with one comparison.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from headpond.cluster.delta import Delta, PartitionChange
from headpond.cluster.follower import PARTITIONS_PER_PIECE
from headpond.cluster.image import MetadataImage
from headpond.cluster.rows import PartitionState
from headpond.config.log import LogConfig
from headpond.model import TopicId, TopicPartition
from headpond.ports import Tasks
from headpond.replication.partition import Partition
from headpond.storage.log.log import PartitionLog
from headpond.storage.manager import LogManager

FETCHES_PER_SLICE = 100
"""So many parked fetches are woken before the loop turns: each of them reads."""


class FetchWaiter(Protocol):
    def news(self, replica: Replica) -> None: ...


class Watcher(Protocol):
    """Wants to know that a fetch of this partition may find something else than the last one did, whether or not a
    fetch waits. It leaves ``Replica.watchers`` when it has heard all that it wants to hear."""

    def note(self, replica: Replica) -> None:
        """There is something else; nobody is answered for it."""

    def news(self, replica: Replica) -> None:
        """There is something that may answer a fetch which waits."""


class LeadershipListener(Protocol):
    """Whoever answers for the partitions of a topic while this broker leads them: coordinators."""

    def lead(self, partition: int, leader_epoch: int) -> None: ...

    def resign(self, partition: int) -> None: ...


class FetchWakes:
    """Partitions with many parked fetches that are to look again: some of them in each turn of the loop, and once for
    all that happened to the partition meanwhile."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._due: dict[Replica, None] = {}
        self._is_running = False

    def later(self, replica: Replica) -> None:
        self._due[replica] = None
        if not self._is_running:
            self._is_running = True
            self._tasks.spawn("wake many fetches", self._run())

    async def _run(self) -> None:
        try:
            while self._due:
                replica = next(iter(self._due))
                del self._due[replica]
                waiters: list[FetchWaiter | Watcher] = [*replica.fetch_waiters, *replica.watchers]
                for at in range(0, len(waiters), FETCHES_PER_SLICE):
                    await asyncio.sleep(0)
                    for waiter in waiters[at : at + FETCHES_PER_SLICE]:
                        waiter.news(replica)
        finally:
            self._is_running = False


class Replica:
    """A partition and the fetches parked at it."""

    __slots__ = ("_wakes", "appended_bytes", "fetch_waiters", "partition", "watchers")

    def __init__(self, partition: Partition, wakes: FetchWakes) -> None:
        self.partition = partition
        self._wakes = wakes
        self.fetch_waiters: dict[FetchWaiter, None] = {}
        self.watchers: dict[Watcher, None] = {}
        self.appended_bytes = 0  # by producers, since the start: for the metrics
        partition.on_high_watermark = self._advanced
        partition.on_log_start = self.note_watchers

    @property
    def is_awaited(self) -> bool:
        """Somebody has read all that is visible, and wants what comes next: its flush should not be late."""
        return bool(self.fetch_waiters or self.watchers)

    def _advanced(self) -> None:
        if self.watchers:
            self._tell_watchers()
        if self.fetch_waiters:
            self.tell_fetchers()

    def tell_fetchers(self) -> None:
        if len(self.fetch_waiters) > FETCHES_PER_SLICE:
            self._wakes.later(self)
            return
        for waiter in list(self.fetch_waiters):
            waiter.news(self)

    def fail_waiters(self) -> None:
        """The partition is gone or led elsewhere: nobody will be answered by waiting."""
        self.partition.fail_waits()
        self._tell_watchers()
        self.tell_fetchers()

    # --- fetch sessions: they know at once what has changed, however many of them are answered in slices

    def note_watchers(self) -> None:
        for watcher in list(self.watchers):
            watcher.note(self)

    def _tell_watchers(self) -> None:
        if len(self.watchers) > FETCHES_PER_SLICE:
            self.note_watchers()
            if self.watchers:
                self._wakes.later(self)
            return
        for watcher in list(self.watchers):
            watcher.news(self)


class Replicas:
    def __init__(
        self,
        *,
        broker_id: int,
        rack: str | None,
        image: MetadataImage,
        logs: LogManager,
        tasks: Tasks,
        make_partition: Callable[[PartitionLog], Partition],
        config_of: Callable[[str], LogConfig],
    ) -> None:
        self.generation = 0
        self.rack = rack
        self._broker_id = broker_id
        self._image = image
        self._logs = logs
        self._tasks = tasks
        self._make_partition = make_partition
        self._config_of = config_of
        self._wakes = FetchWakes(tasks)
        self._replicas: dict[TopicPartition, Replica] = {}
        self._topics: dict[str, dict[int, Replica]] = {}
        self._listeners: dict[str, LeadershipListener] = {}

    def tell_leadership(self, topic: str, listener: LeadershipListener) -> None:
        """Tell ``listener`` from now on which partitions of ``topic`` this broker leads."""
        self._listeners[topic] = listener

    def get(self, tp: TopicPartition) -> Replica | None:
        return self._replicas.get(tp)

    def partition(self, tp: TopicPartition) -> Partition | None:
        replica = self._replicas.get(tp)
        return replica.partition if replica is not None else None

    def of_topic(self, topic: str) -> dict[int, Replica]:
        """This broker's replicas of a topic by partition index; empty for a topic that it does not know."""
        return self._topics.get(topic, {})

    def topic_name(self, topic_id: TopicId) -> str | None:
        return self._image.topic_names.get(topic_id)

    def leader_of(self, tp: TopicPartition) -> tuple[int, int] | None:
        """(leader id, leader epoch) as the image has it: the hint for a client that asked the wrong broker."""
        state = self._image.partition(tp.topic, tp.partition)
        return None if state is None else (state.leader, state.leader_epoch)

    def __len__(self) -> int:
        return len(self._replicas)

    @property
    def topic_count(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._replicas.values())

    async def load(self) -> None:
        """Take over the whole image: at start, when the logs are open."""
        everything = [
            PartitionChange(topic.name, topic.topic_id, index, None, state)
            for topic in self._image.topics.values()
            for index, state in enumerate(topic.partitions)
        ]
        for piece in Delta(self._image.revision, partitions=tuple(everything)).pieces(PARTITIONS_PER_PIECE):
            self.apply(piece)
            await asyncio.sleep(0)

    def apply(self, delta: Delta) -> None:
        """Make the partitions what the image says; called on the loop right after the image changed."""
        kept: list[tuple[TopicPartition, TopicId, PartitionState]] = []
        gone: dict[TopicPartition, Replica] = {}
        for change in delta.partitions:
            tp = TopicPartition(change.topic, change.partition)
            if change.after is None or self._broker_id not in change.after.replicas:
                if (dropped := self._drop(tp)) is not None:
                    gone[tp] = dropped
            else:
                kept.append((tp, change.topic_id, change.after))
        if gone:
            for replica in gone.values():
                replica.note_watchers()  # whoever is told of one finds all of them gone
            for replica in gone.values():
                replica.fail_waiters()
            self._tasks.spawn(f"delete {len(gone)} log(s) of {next(iter(gone)).topic}", self._logs.delete(*gone))
        configs: dict[str, LogConfig] = {}
        for tp, topic_id, state in kept:
            replica = self._replicas.get(tp) or self._add(tp, topic_id, configs)
            if state.leader == self._broker_id:
                replica.partition.lead(state.leader_epoch)
                replica.note_watchers()
                if (listener := self._listeners.get(tp.topic)) is not None:
                    listener.lead(tp.partition, state.leader_epoch)
            else:
                replica.partition.resign(state.leader_epoch)
                self._tell_resigned(tp)
                replica.fail_waiters()
        for topic in delta.topic_configs:
            self.reconfigure(topic)
        if delta.partitions or delta.topics_deleted or delta.topics_created:
            self.generation += 1

    def reconfigure(self, topic: str) -> None:
        config = self._config_of(topic)
        for replica in self.of_topic(topic).values():
            replica.partition.log.reconfigure(config)
        self.generation += 1

    def reconfigure_all(self) -> None:
        for topic in list(self._topics):
            self.reconfigure(topic)

    def _add(self, tp: TopicPartition, topic_id: TopicId, configs: dict[str, LogConfig]) -> Replica:
        log = self._logs.get(tp)
        if log is None:
            config = configs.get(tp.topic)
            if config is None:
                config = configs[tp.topic] = self._config_of(tp.topic)
            log = self._logs.create(tp, topic_id, config)
        replica = Replica(self._make_partition(log), self._wakes)
        self._replicas[tp] = replica
        self._topics.setdefault(tp.topic, {})[tp.partition] = replica
        return replica

    def _drop(self, tp: TopicPartition) -> Replica | None:
        """The caller fails its waiters."""
        replica = self._replicas.pop(tp, None)
        if replica is None:
            return None
        siblings = self._topics[tp.topic]
        del siblings[tp.partition]
        if not siblings:
            del self._topics[tp.topic]
        replica.partition.resign(replica.partition.leader_epoch)
        self._tell_resigned(tp)
        return replica

    def _tell_resigned(self, tp: TopicPartition) -> None:
        if (listener := self._listeners.get(tp.topic)) is not None:
            listener.resign(tp.partition)
