"""One broker's view of the cluster on a simulated store and a clock that jumps: what the tests of metadata stand on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from headpond.cluster.follower import ImageFollower
from headpond.cluster.image import MetadataImage
from headpond.cluster.metadata_writer import MetadataWriter
from headpond.cluster.rows import Endpoint
from headpond.cluster.startup import join_cluster
from headpond.config.broker import TopicDefaults
from headpond.config.dynamic import check_topic
from headpond.config.effective import Effective
from headpond.ports import Committed, Compare, Conflict, Delete, Put
from simulation.harness.chance import SeededRandom
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import SimulatedMetadataStore, StoreServer

EFFECTIVE = Effective()


class LoopTasks:
    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self.tasks.append(task)
        return task

    async def cancel_all(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class RacyStore(SimulatedMetadataStore):
    """``before_transact`` runs once, just before the next transaction: the moment at which somebody else is faster."""

    before_transact: Callable[[], None] | None = None
    transactions: list[int]

    async def transact(self, compares: Sequence[Compare], writes: Iterable[Put | Delete]) -> Committed | Conflict:
        writes = list(writes)
        if self.before_transact is not None:
            action, self.before_transact = self.before_transact, None
            action()
        self.__dict__.setdefault("transactions", []).append(len(compares) + len(writes))
        return await super().transact(compares, writes)


class SmallCluster:
    """Broker ``broker_id`` with its image; several of them may share a server."""

    def __init__(
        self, server: StoreServer, clock: ManualClock, *, broker_id: int = 1, defaults: TopicDefaults | None = None
    ) -> None:
        self.server = server
        self.clock = clock
        self.tasks = LoopTasks()
        self.random = SeededRandom(broker_id)
        self.store = RacyStore(server, clock, latency_s=lambda: 0.001)
        self.image = MetadataImage()
        self.follower = ImageFollower(self.store, self.image, clock, self.tasks)
        self.metadata_writer = MetadataWriter(
            broker_id=broker_id,
            store=self.store,
            follower=self.follower,
            clock=clock,
            random=self.random,
            tasks=self.tasks,
            defaults=defaults or TopicDefaults(),
            validate_topic_configs=lambda configs: check_topic(configs, EFFECTIVE),
        )

    async def start(self, *, rack: str | None = None, features: Mapping[str, int] | None = None) -> SmallCluster:
        broker_id = self.metadata_writer.broker_id
        endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", f"broker{broker_id}.example", 9092)
        await self.follower.start()
        await join_cluster(self.metadata_writer, endpoints=[endpoint], rack=rack, features=features)
        return self


def with_cluster(scenario: Callable[[SmallCluster], Awaitable[None]], **options: Any) -> None:
    """Run ``scenario`` with one started broker; time jumps whenever everybody waits."""

    async def play(server: StoreServer, clock: ManualClock) -> None:
        await scenario(await SmallCluster(server, clock, **options).start())

    simulate(play)


def simulate(scenario: Callable[[StoreServer, ManualClock], Awaitable[None]]) -> None:
    async def main() -> None:
        clock = ManualClock()
        task = asyncio.ensure_future(scenario(StoreServer(clock), clock))
        await clock.run_until(task)
        try:
            await task
        finally:
            for other in asyncio.all_tasks() - {asyncio.current_task()}:
                other.cancel()

    asyncio.run(main())
