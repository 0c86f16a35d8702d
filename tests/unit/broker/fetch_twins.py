"""Two fetch handlers over the same partitions: one reads what has changed in a session, the other one all that it has.

Everything is done twice, and the answers compared byte by byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from headpond.broker.handlers.fetch.fetch import FetchHandler
from headpond.broker.handlers.fetch.read import FetchReader
from headpond.broker.handlers.fetch.session import FetchSession
from headpond.broker.handlers.fetch.sessions import FetchSessions
from headpond.broker.handlers.fetch.wanted import Fetch, FetchOpener
from headpond.broker.net.connection import Connection
from headpond.broker.net.server import Server
from headpond.broker.replicas.replicas import Replica, Replicas
from headpond.broker.requests.turns import PARTITIONS_PER_SLICE, Turns
from headpond.cluster.delta import Delta, PartitionChange
from headpond.cluster.image import MetadataImage
from headpond.cluster.rows import PartitionState
from headpond.config.broker import NetworkSettings
from headpond.coordination.slices import Slices
from headpond.model import ErrorCode, TopicId, TopicPartition
from headpond.protocol.apis import FETCH, request_encoder, response_decoder
from headpond.protocol.schema.fetch import FetchRequest, FetchResponse
from headpond.telemetry.requests import RequestMeters
from simulation.harness.chance import SeededRandom
from simulation.harness.turns import settle
from simulation.harness.workers import SimulatedWorkers
from support.batches import Rec, build
from support.wire import request_header
from unit.broker.connection_rig import INFO, Net, Script, Transport
from unit.storage.storage_rig import NOW_MS, Rig, writable

TOPICS = {"orders": TopicId(bytes(range(16))), "more": TopicId(bytes(range(1, 17)))}
TRANSACTIONAL = 0x10
FIRST_WITH_IDS = 13


class Walker(FetchOpener):
    """Has no fetch rely on what its session knows."""

    def _incremental(self, fetch: Fetch, session: FetchSession) -> Fetch | ErrorCode:
        opened = super()._incremental(fetch, session)
        if isinstance(opened, Fetch) and opened.standing is not None:
            opened.standing = None
            opened.is_wide = len(session.partitions) > PARTITIONS_PER_SLICE
            opened.wanted = [] if opened.is_wide else list(session.partitions.values())
        return opened


class Rules:
    """Who may read what: everybody everything, but for some topics."""

    def __init__(self) -> None:
        self.generation = 0
        self._forbidden: set[str] = set()

    def turn(self, topic: str) -> None:
        self._forbidden ^= {topic}
        self.generation += 1

    def allows(self, principal: object, host: str, operation: object, kind: object, name: str) -> bool:
        return name not in self._forbidden

    def allows_somewhere(self, principal: object, host: str, operation: object, kind: object) -> bool:
        return True


class Twin:
    """One handler, and one client of it."""

    def __init__(self, world: Twins, opener: type[FetchOpener], version: int) -> None:
        rig = world.rig
        self._version = version
        self.server = Server(NetworkSettings(listeners=()), rig.clock, Net(), Script())
        self.server.is_open = True
        self.sessions = FetchSessions(SeededRandom(), slots=10, eviction_ms=120_000)
        meter = RequestMeters().of(FETCH.name)
        self.handler = FetchHandler(
            opener=opener(
                broker_id=1,
                rack=None,
                sessions=self.sessions,
                clock=rig.clock,
                bytes_max=lambda: 57_671_680,
                wait_ms_max=lambda: 600_000,
            ),
            reader=FetchReader(world.replicas, world.rules, self.server, meter),
            turns=Turns(Slices(rig.clock, SimulatedWorkers(rig.clock)), rig.tasks),
            clock=rig.clock,
            tasks=rig.tasks,
            workers=SimulatedWorkers(rig.clock),
            meter=meter,
        )
        self.server.add_hot_handler(FETCH.key, FETCH.versions, self.handler.receive, answers_are_small=False)
        self.connect()

    def connect(self) -> None:
        self.transport, self._taken = Transport(), 0
        self.connection = Connection(self.server, INFO)
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    def send(self, frame: bytes) -> None:
        while frame:
            room = self.connection.get_buffer(-1)
            some = frame[: len(room)]
            room[: len(some)] = some
            self.connection.buffer_updated(len(some))
            frame = frame[len(some) :]

    def answered(self) -> bytes:
        """What came since the last time."""
        self.connection.flush_now()
        found = bytes(self.transport.written)[self._taken :]
        self._taken += len(found)
        return found

    @property
    def session(self) -> FetchSession | None:
        return next(iter(self.sessions._sessions.values()), None)


class Twins:
    """A broker of two topics, a fetch session of each of two handlers, and what a consumer knows."""

    def __init__(self, *, partitions: int, version: int, follows_flush: bool) -> None:
        self._version = version
        self._partitions = partitions
        self.places = [TopicPartition(topic, n) for topic in TOPICS for n in range(partitions)]
        self._follows_flush = follows_flush
        self.rig = Rig(known={tp: TOPICS[tp.topic] for tp in self.places})
        self.clock = self.rig.clock
        self.rules = Rules()
        self._revision = 0
        self._epochs = dict.fromkeys(self.places, 0)
        self._sequences: dict[tuple[TopicPartition, int], int] = {}
        self.offsets = dict.fromkeys(self.places, 0)  # the consumer's
        self.asked: dict[TopicPartition, int] = {}  # what it last said of them
        self.counts_bytes = False
        self.session_id = self.session_epoch = 0

    async def start(self) -> None:
        await self.rig.open()
        self._image = MetadataImage()
        self.replicas = Replicas(
            broker_id=1,
            rack=None,
            image=self._image,
            logs=self.rig.manager,
            tasks=self.rig.tasks,
            make_partition=lambda log: self.rig.partition(log, follows_flush=self._follows_flush),
            config_of=lambda _: self.rig.config,
        )
        for topic in TOPICS:
            self.create(topic)
        self.twins = [Twin(self, FetchOpener, self._version), Twin(self, Walker, self._version)]

    # --- what happens to the partitions

    def create(self, topic: str) -> None:
        if not self.replicas.of_topic(topic):
            self._image.topic_names[TOPICS[topic]] = topic
            self._apply(topic, range(self._partitions), None, 1)

    def delete(self, topic: str) -> None:
        if self.replicas.of_topic(topic):
            del self._image.topic_names[TOPICS[topic]]
            self._apply(topic, range(self._partitions), 1, None)

    def lead(self, tp: TopicPartition, leader: int) -> None:
        if self.replicas.get(tp) is not None:
            self._epochs[tp] += 1
            self._apply(tp.topic, [tp.partition], 1, leader)

    def _apply(self, topic: str, partitions: Iterable[int], before: int | None, after: int | None) -> None:
        def state(index: int, leader: int | None) -> PartitionState | None:
            if leader is None:
                return None
            epoch = self._epochs[TopicPartition(topic, index)]
            return PartitionState(
                leader=leader, leader_epoch=epoch, partition_epoch=epoch, replicas=(1, 2), isr=(leader,)
            )

        self._revision += 1
        changes = [
            PartitionChange(topic, TOPICS[topic], index, state(index, before), state(index, after))
            for index in partitions
        ]
        self.replicas.apply(Delta(self._revision, partitions=tuple(changes)))

    async def append(self, tp: TopicPartition, *, producer: int = -1, bytes_each: int = 50) -> None:
        """Not flushed; as a producer with acks=1 appends."""
        replica = self._led(tp)
        if replica is None:
            return
        sequence = self._sequences.get((tp, producer), 0) if producer >= 0 else -1
        batch = build(
            [Rec(b"x" * bytes_each)],
            attributes=TRANSACTIONAL if producer >= 0 else 0,
            timestamp_ms=NOW_MS,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=sequence,
        )
        data, header = writable(batch)
        log = replica.partition.log
        while not log.can_append(len(data), header.max_timestamp, self.clock.now_ms()):
            making = log.make_room(len(data), header.max_timestamp, self.clock.now_ms())
            await self.clock.run_until(asyncio.ensure_future(making))
        replica = self._led(tp)
        if replica is None or replica.partition.log is not log:
            return
        replica.partition.append(data, header, self.clock.now_ms(), is_urgent=replica.is_awaited)
        if producer >= 0:
            self._sequences[tp, producer] = sequence + 1

    async def end(self, tp: TopicPartition, producer: int, *, is_abort: bool) -> None:
        replica = self._led(tp)
        log = replica.partition.log if replica is not None else None
        if replica is None or log is None or not log.can_append(128, NOW_MS, self.clock.now_ms()):
            return
        replica.partition.end_transaction(
            producer_id=producer,
            producer_epoch=0,
            is_abort=is_abort,
            coordinator_epoch=0,
            raises_epoch=False,
            now_ms=self.clock.now_ms(),
        )

    async def flush(self, tp: TopicPartition) -> None:
        replica = self.replicas.get(tp)
        if replica is not None:
            await self.clock.run_until(asyncio.ensure_future(replica.partition.log.flush()))

    async def delete_records(self, tp: TopicPartition) -> None:
        replica = self._led(tp)
        if replica is not None and replica.partition.log.active is not None:
            log = replica.partition.log
            await self.clock.run_until(asyncio.ensure_future(log.advance_log_start(replica.partition.high_watermark)))

    def _led(self, tp: TopicPartition) -> Replica | None:
        replica = self.replicas.get(tp)
        return replica if replica is not None and replica.partition.is_leader else None

    # --- what the client does

    def fetch(
        self,
        named: dict[TopicPartition, tuple[int, int, int]],
        *,
        forgotten: Iterable[TopicPartition] = (),
        **fields: Any,
    ) -> None:
        """``named``: fetch offset, bytes at most, leader epoch."""
        by_id = self._version >= FIRST_WITH_IDS
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for tp, (offset, max_bytes, epoch) in named.items():
            name: dict[str, Any] = {"topic_id": TOPICS[tp.topic]} if by_id else {"topic": tp.topic}
            topic = topics.setdefault(tp.topic, FetchRequest.FetchTopic(**name, partitions=[]))
            topic.partitions.append(
                FetchRequest.FetchPartition(
                    partition=tp.partition,
                    fetch_offset=offset,
                    partition_max_bytes=max_bytes,
                    current_leader_epoch=epoch,
                )
            )
        gone = [
            FetchRequest.ForgottenTopic(
                **({"topic_id": TOPICS[tp.topic]} if by_id else {"topic": tp.topic}), partitions=[tp.partition]
            )
            for tp in forgotten
        ]
        request = FetchRequest(
            topics=list(topics.values()),
            forgotten_topics_data=gone,
            session_id=self.session_id,
            session_epoch=self.session_epoch,
            **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **fields},
        )
        flexible = self._version >= 12
        body = request_header(1, self._version, 7, "test", flexible=flexible)
        body += request_encoder(1, self._version)(request)
        if self.session_id:
            self.session_epoch += 1
        for twin in self.twins:
            twin.send(len(body).to_bytes(4, "big") + body)

    async def compare(self) -> list[FetchResponse]:
        """Both were answered the same, or not yet."""
        await settle(30)
        one, other = (twin.answered() for twin in self.twins)
        answers = self._decoded(one)
        assert one == other, (answers, self._decoded(other))
        for answer in answers:
            self._learn(answer)
        self._check_session()
        return answers

    def reconnect(self) -> None:
        for twin in self.twins:
            twin.connection.connection_lost(None)
            twin.connect()

    @property
    def waits(self) -> bool:
        return self.twins[0].handler.parked_count > 0 or bool(self.twins[0].connection._slots)

    def _decoded(self, written: bytes) -> list[FetchResponse]:
        found = []
        while written:
            size_bytes = int.from_bytes(written[:4], "big")
            header_bytes = 5 if self._version >= 12 else 4
            message, _ = response_decoder(1, self._version)(written[4 : 4 + size_bytes], header_bytes)
            found.append(message)
            written = written[4 + size_bytes :]
        return found

    def _learn(self, answer: FetchResponse) -> None:
        if answer.error_code:
            self.session_id = self.session_epoch = 0
            return
        if not self.session_id:
            self.session_id, self.session_epoch = answer.session_id, 1 if answer.session_id else 0

    def _check_session(self) -> None:
        """Each partition of the session is known to have changed, or hears of what happens where it is."""
        session = self.twins[0].session
        if session is None or session.view is None:
            return
        for (topic, index), partition in session.partitions.items():
            if partition not in session.changed:
                name = self.replicas.topic_name(TopicId(topic)) if isinstance(topic, bytes) else topic
                assert name is not None
                replica = self.replicas.get(TopicPartition(name, index))
                assert replica is not None
                assert partition.replica is replica and partition in replica.watchers


def run(test: Callable[[Twins], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def go() -> None:
        world = Twins(**{"partitions": 3, "version": 11, "follows_flush": True, **options})
        await world.start()
        await test(world)
        await world.rig.tasks.cancel_all()

    asyncio.run(go())
