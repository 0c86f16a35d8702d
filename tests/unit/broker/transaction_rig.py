"""A broker's partitions on a simulated disk, a coordinator that answers as it is told, a connection to produce on."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from headpond.broker.coordinators.local_markers import LocalMarkers
from headpond.broker.handlers.produce.parts import ProduceParts
from headpond.broker.handlers.produce.produce import ProduceHandler
from headpond.broker.handlers.produce.transactional import ProduceTransactions
from headpond.broker.handlers.produce.waiting import Waiting
from headpond.broker.net.slots import Slot
from headpond.broker.replicas.replicas import Replica, Replicas
from headpond.broker.requests.context import ANONYMOUS
from headpond.broker.requests.turns import Turns
from headpond.broker.security.authorizer import AllowAll, Authorizer
from headpond.cluster.delta import Delta, PartitionChange
from headpond.cluster.image import MetadataImage
from headpond.cluster.rows import PartitionState
from headpond.config.transactions import TransactionSettings
from headpond.coordination.home import Ended, Producer
from headpond.coordination.slices import Slices
from headpond.coordination.transactions.markers import Marker
from headpond.model import ErrorCode, TopicId, TopicPartition
from headpond.protocol.apis import request_encoder, response_decoder
from headpond.protocol.schema.produce import ProduceRequest
from headpond.replication.deadlines import Deadlines
from headpond.telemetry.requests import RequestMeters
from simulation.harness.workers import SimulatedWorkers
from support.batches import Rec, build
from support.wire import request_header
from unit.storage.storage_rig import NOW_MS, TOPIC_ID, Rig

OFFSETS = "__consumer_offsets"
TOPICS = {"orders": TOPIC_ID, OFFSETS: TopicId(bytes(range(1, 17)))}
PARTITIONS = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition(OFFSETS, 0)]
LED = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
TRANSACTIONAL = 0x10


class Coordinator:
    """``TxnVerifier`` and the keeper of offsets. ``answers``: the code of each next question, NONE if there is none."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, str, Producer, list[TopicPartition]]] = []
        self.was_asked = asyncio.Event()
        self.answers: list[ErrorCode] = []
        self.gate: asyncio.Event | None = None  # questions are answered when it is set
        self.serves_offsets = True
        self.endings: list[tuple[int, Ended]] = []

    async def verify(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        return await self._answer("verify", transactional_id, producer, partitions)

    async def add(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        return await self._answer("add", transactional_id, producer, partitions)

    async def _answer(
        self, what: str, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        self.questions.append((what, transactional_id, producer, list(partitions)))
        self.was_asked.set()
        if self.gate is not None:
            await self.gate.wait()
        return dict.fromkeys(partitions, self.answers.pop(0) if self.answers else ErrorCode.NONE)

    def is_serving(self, partition: int) -> bool:
        return self.serves_offsets

    def ended(self, partition: int, ended: Ended) -> None:
        self.endings.append((partition, ended))


class FakeConnection:
    """As much of a connection as the produce handler uses; a held request is served again when it is let go."""

    principal = ANONYMOUS
    peer_host = "client"

    def __init__(self) -> None:
        self.produce_prefix = None
        self.prepared_produce = None
        self.newest_slot = None
        self.let_go = asyncio.Event()
        self.slots: list[Slot] = []
        self.is_closed = self.closed = False

    def serve_again_later(self) -> None:
        pass

    def hold(self) -> None:
        self.let_go.clear()

    def unhold(self) -> None:
        self.let_go.set()

    def park(self) -> Slot:
        slot = Slot(self)  # type: ignore[arg-type]
        self.park_in(slot)
        return slot

    def park_in(self, slot: Slot) -> None:
        self.slots.append(slot)
        self.let_go.clear()

    def answer_parked(self, slot: Slot, answer: bytes) -> None:
        slot.complete((answer,))

    def slot_completed(self, slot: Slot) -> None:
        self.let_go.set()

    def close(self) -> None:
        self.is_closed = True

    abort = close


class World:
    def __init__(self) -> None:
        self.rig = Rig(known={tp: TOPICS[tp.topic] for tp in PARTITIONS})
        self.coordinator = Coordinator()
        self.settings = TransactionSettings()

    async def start(self, *, authorizer: Authorizer | None = None) -> World:
        rig = self.rig
        await rig.open()
        image = MetadataImage()
        self.replicas = Replicas(
            broker_id=1,
            rack=None,
            image=image,
            logs=rig.manager,
            tasks=rig.tasks,
            make_partition=rig.partition,
            config_of=lambda _: rig.config,
        )
        changes = [PartitionChange(tp.topic, TOPICS[tp.topic], tp.partition, None, LED) for tp in PARTITIONS]
        self.replicas.apply(Delta(1, partitions=tuple(changes)))
        self.markers = LocalMarkers(
            self.replicas,
            rig.clock,
            rig.tasks,
            Slices(rig.clock, SimulatedWorkers(rig.clock)),
            offsets_topic=OFFSETS,
            offsets=self.coordinator,
        )
        self.handler = ProduceHandler(
            ProduceParts(
                replicas=self.replicas,
                waiting=Waiting(Deadlines(rig.clock), RequestMeters().of("Produce")),
                authorizer=authorizer or AllowAll(),
                clock=rig.clock,
                tasks=rig.tasks,
                looks=rig.manager.looks,
                meter=RequestMeters().of("Produce"),
                transactions=ProduceTransactions(self.coordinator, rig.clock, lambda: self.settings),
                turns=Turns(Slices(rig.clock, SimulatedWorkers(rig.clock)), rig.tasks),
                workers=SimulatedWorkers(rig.clock),
            )
        )
        return self

    def replica(self, number: int = 0) -> Replica:
        found = self.replicas.get(PARTITIONS[number])
        assert found is not None
        return found

    async def send(self, *batches: bytes, version: int = 12, transactional_id: str | None = "shop") -> list[Any]:
        """Produce one batch for each of the topic's partitions; the answers, by partition."""
        connection = FakeConnection()
        rows = [ProduceRequest.PartitionProduceData(index=n, records=batch) for n, batch in enumerate(batches) if batch]
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=1_000,
            topic_data=[ProduceRequest.TopicProduceData(name="orders", partition_data=rows)],
        )
        frame = bytearray(request_header(0, version, 7, "test", flexible=version >= 9))
        frame += request_encoder(0, version)(request)
        while True:
            buffer = bytearray(frame)
            sent: Any = connection
            answer = self.handler.receive(sent, buffer, memoryview(buffer), 0, len(buffer), version, 7)
            if answer is None:
                await connection.let_go.wait()
                if not connection.slots:
                    continue
                answer = b"".join(bytes(part) for part in connection.slots[-1].parts or ())
            message, _ = response_decoder(0, version)(answer[9 if version >= 9 else 8 :], 0)
            return list(message.responses[0].partition_responses)

    async def end(self, *, epoch: int, is_commit: bool, producer_id: int = 5, version: int = 2, **fields: Any) -> Any:
        """A marker for the first partition; its code."""
        marker = Marker(producer_id, epoch, is_commit, fields.get("coordinator_epoch", 0), version)
        tp = PARTITIONS[fields.get("partition", 0)]
        return (await self.markers.write(marker, [tp]))[tp]


def data(sequence: int = 0, *, producer_id: int = 5, epoch: int = 0, attributes: int = TRANSACTIONAL) -> bytes:
    return build(
        [Rec(b"in a transaction")],
        attributes=attributes,
        timestamp_ms=NOW_MS,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
