"""What a workload sees: its client host, the topics, its own chance, the clock, and the history that it writes.

A workload is a program: ``async def program(site)``, started in a process of a client host. When the nemesis kills that
process, it is started again with a new ``site.life``, so that its processes have new names.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

from headpond.client import Client, ClientError
from headpond.client.errors import OUTCOME_UNKNOWN, ConnectionLost, RequestTimedOut
from headpond.model.ids import id_text
from simulation.harness.hosts import ClientHost
from simulation.history import History, Operation, Place

Op = TypeVar("Op", bound=Operation)

CLIENT_TIMEOUT_S = 3.0
"""Short, since a half-open connection is noticed by nothing else, and most of a run would be waiting."""


class Topic(NamedTuple):
    name: str
    partitions: int
    configs: tuple[tuple[str, str], ...] = ()
    is_lasting: bool = True
    """False: the admin workload deletes it and makes it anew."""

    @property
    def is_compacted(self) -> bool:
        return ("cleanup.policy", "compact") in self.configs


class Site:
    def __init__(
        self,
        host: ClientHost,
        history: History,
        topics: tuple[Topic, ...],
        chance: random.Random,
        *,
        name: str,
        life: int,
        is_over: Callable[[], bool],
        is_healed: Callable[[], bool],
    ) -> None:
        self.host = host
        self.history = history
        self.topics = topics
        self.chance = chance
        self.name = name
        self.life = life
        self.process = f"{name}.{life}"
        self._is_over = is_over
        self._is_healed = is_healed
        self._count = 0
        self._orders: dict[tuple[str, str, int], int] = defaultdict(int)
        self.succeeded_healed = 0
        """Operations that were ok, and a progress, after all faults had ended."""

    @property
    def is_over(self) -> bool:
        """The workload should end what it does and return."""
        return self._is_over()

    @property
    def now_s(self) -> float:
        """The simulation's own time: a host's clock may be wrong."""
        return self.host.world.loop.time()

    def topics_where(self, wanted: Callable[[Topic], bool]) -> list[Topic]:
        return [topic for topic in self.topics if wanted(topic)]

    @asynccontextmanager
    async def client(self, timeout_s: float = CLIENT_TIMEOUT_S) -> AsyncIterator[Client]:
        async with self.host.client(["b1"], timeout_s=timeout_s) as client:
            yield client

    async def pause(self, least_s: float, most_s: float) -> None:
        await self.host.clock.sleep(self.chance.uniform(least_s, most_s))

    def unique(self) -> str:
        """A text that no other process of the run has, nor this one again."""
        self._count += 1
        return f"{self.process}/{self._count}"

    def next_order(self, process: str, topic: str, partition: int) -> int:
        """Counts the sends of one process to one partition."""
        self._orders[process, topic, partition] += 1
        return self._orders[process, topic, partition]

    # --- the history

    def begin(self, operation: Op) -> Op:
        """Note an operation before it is asked for; ``ok``, ``refused`` or ``lost`` end it."""
        operation.invoked_s = self.now_s
        self.history.operations.append(operation)
        return operation

    def ok(self, operation: Operation, *, is_progress: bool = True) -> None:
        """``is_progress`` False: a workload that did only such things has got nowhere."""
        operation.ended_s = self.now_s
        operation.outcome = "ok"
        if is_progress and self._is_healed():
            self.succeeded_healed += 1

    def refused(self, operation: Operation, error: int) -> None:
        """An error code in the answer to a request that was sent once."""
        operation.ended_s = self.now_s
        operation.error = error
        operation.outcome = "unknown" if error in OUTCOME_UNKNOWN else "failed"

    def lost(self, operation: Operation, error: ClientError) -> None:
        """No answer, or one to a request that the client may have sent several times: the outcome is unknown, unless
        nothing was ever sent."""
        operation.ended_s = self.now_s
        operation.error = int(error.code)
        operation.outcome = "unknown"

    async def once(self, operations: Sequence[Operation], asking: Coroutine[Any, Any, Any]) -> Any | None:
        """The answer to a request that is sent at most once; None when there is none, and the operations are ended."""
        try:
            return await asking
        except (ConnectionLost, RequestTimedOut) as error:
            for operation in operations:
                self.lost(operation, error)
        except ClientError as error:
            for operation in operations:
                self.refused(operation, int(error.code))
        return None


async def place_of(client: Client, topic: str, partition: int) -> Place | None:
    """The partition in the topic's present life; None when there is no such topic now."""
    try:
        view = (await client.metadata([topic])).topics.get(topic)
    except ClientError:
        return None
    if view is None or view.error or partition >= len(view.partitions):
        return None
    return Place(topic, id_text(view.topic_id), partition)
