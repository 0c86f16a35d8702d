"""Fetches of real connections, read from a simulated disk; the loop's turns are counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headpond.broker.handlers.fetch import wide as fetch_wide
from headpond.broker.handlers.fetch.fetch import FetchHandler
from headpond.broker.handlers.fetch.read import FetchReader
from headpond.broker.handlers.fetch.session import FetchSession
from headpond.broker.handlers.fetch.sessions import FetchSessions
from headpond.broker.handlers.fetch.wanted import FetchOpener
from headpond.broker.net.connection import Connection
from headpond.broker.net.server import Server
from headpond.broker.replicas.parked_fetch import ParkedFetch
from headpond.broker.replicas.replicas import Replicas
from headpond.broker.requests.turns import Turns
from headpond.broker.security.authorizer import AllowAll
from headpond.cluster.delta import Delta, PartitionChange
from headpond.cluster.image import MetadataImage
from headpond.cluster.rows import PartitionState
from headpond.config.broker import NetworkSettings
from headpond.coordination.slices import Slices
from headpond.model import TopicPartition
from headpond.protocol.apis import FETCH, request_encoder, response_decoder
from headpond.protocol.schema.fetch import FetchRequest, FetchResponse
from headpond.storage.log.log import PartitionLog
from headpond.telemetry.requests import RequestMeters
from simulation.harness.chance import SeededRandom
from simulation.harness.turns import settle
from simulation.harness.workers import SimulatedWorkers
from support.wire import request_header
from unit.broker.connection_rig import INFO, Net, Script, Transport
from unit.storage.storage_rig import TOPIC_ID, Rig, make_batch, writable

LED = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
VERSION = 11
WAIT_MS_MAX = 600_000


def run(test: Callable[[FetchWorld], Coroutine[Any, Any, None]], *, partitions: int = 1) -> None:
    async def go() -> None:
        world = FetchWorld(partitions)
        await world.rig.open()
        world.start()
        await test(world)
        await world.rig.tasks.cancel_all()

    asyncio.run(go())


class FetchWorld:
    """A broker with one topic, "orders"."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.rig = Rig(known={TopicPartition("orders", n): TOPIC_ID for n in range(partitions)})
        self.clock = self.rig.clock
        self.turn = 0

    def start(self) -> None:
        rig = self.rig
        meter = RequestMeters().of(FETCH.name)
        self.server = Server(NetworkSettings(listeners=()), rig.clock, Net(), Script())
        self.server.is_open = True
        self.replicas = Replicas(
            broker_id=1,
            rack=None,
            image=MetadataImage(),
            logs=rig.manager,
            tasks=rig.tasks,
            make_partition=rig.partition,
            config_of=lambda _: rig.config,
        )
        changes = [PartitionChange("orders", TOPIC_ID, n, None, LED) for n in range(self.partitions)]
        self.replicas.apply(Delta(1, partitions=tuple(changes)))
        slices = Slices(rig.clock, SimulatedWorkers(rig.clock))
        self.sessions = FetchSessions(
            SeededRandom(),
            slots=1_000,
            eviction_ms=120_000,
            free=lambda work: rig.tasks.spawn("free sessions", slices.finish(work)),
        )
        opener = FetchOpener(
            broker_id=1,
            rack=None,
            sessions=self.sessions,
            clock=rig.clock,
            bytes_max=lambda: 57_671_680,
            wait_ms_max=lambda: WAIT_MS_MAX,
        )
        self.handler = FetchHandler(
            opener=opener,
            reader=FetchReader(self.replicas, AllowAll(), self.server, meter),
            turns=Turns(slices, rig.tasks),
            clock=rig.clock,
            tasks=rig.tasks,
            workers=SimulatedWorkers(rig.clock),
            meter=meter,
        )
        self.server.add_hot_handler(FETCH.key, FETCH.versions, self.handler.receive, answers_are_small=False)
        rig.tasks.spawn("count turns", self._count_turns())

    def client(self) -> FetchClient:
        return FetchClient(self)

    async def append(self, partition: int) -> None:
        """One batch, flushed: whoever waits for it hears of it."""
        await self.until(asyncio.ensure_future((await self.append_only(partition)).flush()))

    async def append_only(self, partition: int) -> PartitionLog:
        """One batch that is not flushed yet."""
        replica = self.replicas.get(TopicPartition("orders", partition))
        assert replica is not None
        data, header = writable(make_batch(1))
        log = replica.partition.log
        while not log.can_append(len(data), header.max_timestamp, self.clock.now_ms()):
            await self.until(asyncio.ensure_future(log.make_room(len(data), header.max_timestamp, self.clock.now_ms())))
        replica.partition.append(data, header, self.clock.now_ms(), is_urgent=False)
        return log

    async def until(self, done: asyncio.Future[Any]) -> None:
        await self.clock.run_until(done)

    async def settle(self) -> None:
        """Everybody gets on as far as is possible now; a wide request's pauses pass, longer waits do not."""
        for _ in range(2_000):
            await settle(5)
            if (self.clock.next_timer_s() or 1.0) < 0.01:
                self.clock.advance(0.002)

    async def _count_turns(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)

    def watch_slices(self, monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, int]]:
        """How many partitions were looked at, by what was done and the loop's turn."""
        looked: Counter[tuple[str, int]] = Counter()

        def counted(what: str, function: Any, argument: int) -> Any:
            def count(*arguments: Any) -> Any:
                items = list(arguments[argument])
                looked[what, self.turn] += len(items)
                return function(*arguments[:argument], items, *arguments[argument + 1 :])

            return count

        monkeypatch.setattr(FetchReader, "read", counted("read", FetchReader.read, 2))
        monkeypatch.setattr(FetchSessions, "add", counted("add", FetchSessions.add, 2))
        monkeypatch.setattr(FetchSessions, "forget", counted("forget", FetchSessions.forget, 2))
        monkeypatch.setattr(FetchSession, "select", counted("select", FetchSession.select, 1))
        monkeypatch.setattr(fetch_wide, "told", counted("tell", fetch_wide.told, 1))
        monkeypatch.setattr(ParkedFetch, "stand_at", counted("stand", ParkedFetch.stand_at, 1))
        return looked


class FetchClient:
    def __init__(self, world: FetchWorld) -> None:
        self._world = world
        self._taken = 0
        self.transport = Transport()
        self.connection = Connection(world.server, INFO)
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    def send(self, *partitions: int, topic: str = "orders", **fields: Any) -> None:
        wanted = [FetchRequest.FetchPartition(partition=n, partition_max_bytes=1_000) for n in partitions]
        topics = [FetchRequest.FetchTopic(topic=topic, partitions=wanted)] if wanted else []
        request = FetchRequest(**{"topics": topics, "min_bytes": 1, "max_wait_ms": 500, **fields})
        body = request_header(1, VERSION, 7, "test", flexible=False) + request_encoder(1, VERSION)(request)
        self.send_bytes(len(body).to_bytes(4, "big") + body)

    def send_bytes(self, data: bytes) -> None:
        while data:
            assert self.transport.reading
            room = self.connection.get_buffer(-1)
            some = data[: len(room)]
            room[: len(some)] = some
            self.connection.buffer_updated(len(some))
            data = data[len(some) :]

    def answers(self) -> list[FetchResponse]:
        """Those that came since the last time."""
        self.connection.flush_now()
        found = []
        written = bytes(self.transport.written)
        while len(written) >= self._taken + 4:
            size = int.from_bytes(written[self._taken : self._taken + 4], "big")
            body = written[self._taken + 4 : self._taken + 4 + size]
            message, _ = response_decoder(1, VERSION)(body, 4)
            found.append(message)
            self._taken += 4 + size
        return found

    async def answer(self) -> FetchResponse:
        await self._world.settle()
        (answer,) = self.answers()
        return answer


def rows(answer: FetchResponse) -> dict[int, FetchResponse.PartitionData]:
    return {row.partition_index: row for topic in answer.responses for row in topic.partitions}
