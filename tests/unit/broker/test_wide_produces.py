"""Produces for many partitions: each slice looks at a limited number of them; what is appended, answered and refused is
the same as ever."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from headpond.broker.handlers.produce.parts import ProduceParts
from headpond.broker.handlers.produce.produce import ProduceHandler
from headpond.broker.handlers.produce.transactional import ProduceTransactions
from headpond.broker.handlers.produce.waiting import Waiting
from headpond.broker.handlers.produce.wide import WideProduces
from headpond.broker.handlers.produce.wire import ELEMENTS_BY_HAND, count_elements
from headpond.broker.net.connection import Connection
from headpond.broker.requests.turns import Turns
from headpond.broker.security.authorizer import AllowAll
from headpond.config.transactions import TransactionSettings
from headpond.coordination.slices import Slices
from headpond.protocol.apis import PRODUCE, request_encoder, response_decoder
from headpond.protocol.schema.produce import ProduceRequest, ProduceResponse
from headpond.replication.deadlines import Deadlines
from headpond.telemetry.requests import RequestMeters
from simulation.harness.turns import settle
from simulation.harness.workers import SimulatedWorkers
from support.wire import request_header
from unit.broker.connection_rig import INFO, Transport
from unit.broker.fetch_rig import FetchWorld, run
from unit.broker.transaction_rig import Coordinator
from unit.storage.storage_rig import make_batch

MANY = 1_300
IN_ONE_SLICE = 500
UNKNOWN, INVALID, WITHOUT_ID, TIMED_OUT = 3, 87, 53, 7
BATCH = make_batch(1, value_bytes=1)
PAST_STAMPS = 17  # the offset, the length, the leader's epoch and the magic byte
TRANSACTIONAL = bytearray(BATCH)
TRANSACTIONAL[22] |= 0x10


class Producer:
    """A connection to produce on, and the broker's other end of it."""

    def __init__(self, world: FetchWorld) -> None:
        self._world = world
        self._taken = 0
        self.meter = RequestMeters().of(PRODUCE.name)
        self.waiting = Waiting(Deadlines(world.clock), self.meter)
        self.handler = ProduceHandler(
            ProduceParts(
                replicas=world.replicas,
                waiting=self.waiting,
                authorizer=AllowAll(),
                clock=world.clock,
                tasks=world.rig.tasks,
                looks=world.rig.manager.looks,
                meter=self.meter,
                transactions=ProduceTransactions(Coordinator(), world.clock, TransactionSettings),
                turns=Turns(Slices(world.clock, SimulatedWorkers(world.clock)), world.rig.tasks),
                workers=SimulatedWorkers(world.clock),
            )
        )
        world.server.add_hot_handler(PRODUCE.key, PRODUCE.versions, self.handler.receive, answers_are_small=True)
        self.transport = Transport()
        self.connection = Connection(world.server, INFO)
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    def send(self, *topics: tuple[str, dict[int, bytes]], version: int = 9, **fields: Any) -> None:
        self.version = version
        request = ProduceRequest(
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=name,
                    partition_data=[
                        ProduceRequest.PartitionProduceData(index=index, records=memoryview(records))
                        for index, records in partitions.items()
                    ],
                )
                for name, partitions in topics
            ],
            **{"acks": -1, "timeout_ms": 30_000, **fields},
        )
        body = request_header(0, version, 7, "test", flexible=version >= 9) + request_encoder(0, version)(request)
        data = len(body).to_bytes(4, "big") + body
        while data:
            assert self.transport.reading
            room = self.connection.get_buffer(-1)
            some = data[: len(room)]
            room[: len(some)] = some
            self.connection.buffer_updated(len(some))
            data = data[len(some) :]

    def answers(self) -> list[ProduceResponse]:
        self.connection.flush_now()
        found = []
        written = bytes(self.transport.written)
        while len(written) > self._taken:
            size = int.from_bytes(written[self._taken : self._taken + 4], "big")
            body = written[self._taken + 4 : self._taken + 4 + size]
            message, _ = response_decoder(0, self.version)(body, 5 if self.version >= 9 else 4)
            found.append(message)
            self._taken += 4 + size
        return found

    async def answer(self) -> ProduceResponse:
        await self.settle()
        (answer,) = self.answers()
        return answer

    async def settle(self) -> None:
        """Room is made for each log one after the other: that takes the loop more turns."""
        for _ in range(4):
            await self._world.settle()


def codes(answer: ProduceResponse) -> list[tuple[str, int, int]]:
    return [(topic.name, row.index, row.error_code) for topic in answer.responses for row in topic.partition_responses]


def watch_slices(world: FetchWorld, monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, int]]:
    looked: Counter[tuple[str, int]] = Counter()

    def counted(what: str) -> Any:
        function = getattr(ProduceHandler, what)

        def count(handler: ProduceHandler, topics: Any, *rest: Any) -> Any:
            looked[what, world.turn] += sum(len(entries) for _, entries in topics)
            return function(handler, topics, *rest)

        return count

    for what in ("admit", "append"):
        monkeypatch.setattr(ProduceHandler, what, counted(what))
    return looked


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_each_partition_gets_its_own_answer_however_many_there_are(version: int) -> None:
    async def test(world: FetchWorld) -> None:
        producer = Producer(world)
        wanted = dict.fromkeys(range(0, 2 * MANY, 2), BATCH)
        wanted[4] = b"no batch"
        producer.send(("nothing", {0: BATCH}), ("orders", wanted), ("empty", {}), version=version)
        answer = await producer.answer()
        expected = [("nothing", 0, UNKNOWN)]
        for index in wanted:
            code = INVALID if index == 4 else 0 if index < MANY else UNKNOWN
            expected.append(("orders", index, code))
        assert codes(answer) == expected
        ends = [replica.partition.log.log_end_offset for replica in world.replicas]
        assert ends == [int(index % 2 == 0 and index != 4) for index in range(MANY)]
        assert producer.transport.reading and not producer.waiting.count

    run(test, partitions=MANY)


def test_a_wide_produce_looks_at_a_limited_number_of_partitions_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        looked = watch_slices(world, monkeypatch)
        producer = Producer(world)
        producer.send(("orders", dict.fromkeys(range(MANY), BATCH)), *((f"t{n}", {0: BATCH}) for n in range(MANY)))
        assert len(codes(await producer.answer())) == 2 * MANY
        for what in ("admit", "append"):
            counts = [count for (each, _), count in looked.items() if each == what]
            assert sum(counts) >= 2 * MANY and max(counts) <= IN_ONE_SLICE

    run(test, partitions=MANY)


def test_the_next_request_waits_until_the_wide_one_has_taken_effect() -> None:
    async def test(world: FetchWorld) -> None:
        producer = Producer(world)
        producer.send(("orders", dict.fromkeys(range(MANY), BATCH)), acks=1)
        assert not producer.transport.reading
        await producer.settle()
        assert len(producer.answers()) == 1
        producer.send(("orders", {0: BATCH}), acks=1)
        (row,) = (await producer.answer()).responses[0].partition_responses
        assert row.base_offset == 1
        assert producer.meter.total == 2

    run(test, partitions=MANY)


def test_a_wide_produce_without_an_answer_closes_the_connection_if_it_fails() -> None:
    async def test(world: FetchWorld) -> None:
        producer = Producer(world)
        producer.send(("orders", dict.fromkeys(range(MANY), BATCH)), acks=0)
        await producer.settle()
        assert not producer.transport.written and not producer.transport.closing and producer.transport.reading
        assert all(replica.partition.log.log_end_offset == 1 for replica in world.replicas)
        producer.send(("nothing", dict.fromkeys(range(MANY), BATCH)), acks=0)
        await producer.settle()
        assert producer.transport.closing

    run(test, partitions=MANY)


def test_a_wide_produce_is_refused_as_a_whole_for_a_transactional_batch_without_an_id() -> None:
    async def test(world: FetchWorld) -> None:
        producer = Producer(world)
        batches = dict.fromkeys(range(MANY), BATCH)
        batches[MANY - 1] = bytes(TRANSACTIONAL)
        producer.send(("orders", batches))
        assert {code for _, _, code in codes(await producer.answer())} == {WITHOUT_ID}
        assert not any(replica.partition.log.log_end_offset for replica in world.replicas)

    run(test, partitions=MANY)


def test_a_wide_produce_is_answered_when_its_last_batch_is_flushed_or_its_time_is_up() -> None:
    async def test(world: FetchWorld) -> None:
        producer = Producer(world)
        producer.send(("orders", dict.fromkeys(range(MANY), BATCH)))
        await producer.settle()
        assert len(producer.answers()) == 1
        last = list(world.replicas)[-1]
        last.partition.log.on_flushed = lambda end_offset: None  # its flush is never heard of
        producer.send(("orders", dict.fromkeys(range(MANY), BATCH)))
        await producer.settle()
        assert producer.answers() == [] and producer.waiting.count == 1
        world.clock.advance(31)
        outcome = codes(await producer.answer())
        assert [code for _, _, code in outcome] == [0] * (MANY - 1) + [TIMED_OUT]
        assert not producer.waiting.count

    run(test, partitions=MANY)


def test_a_wide_produce_whose_client_has_gone_is_left_where_it_is() -> None:
    async def test(world: FetchWorld) -> None:
        producer = Producer(world)
        producer.send(("orders", dict.fromkeys(range(MANY), BATCH)))
        await settle(10)
        producer.connection.connection_lost(None)
        await producer.settle()
        assert not producer.transport.written and not producer.waiting.count
        assert len(world.rig.tasks) <= 6

    run(test, partitions=MANY)


def test_a_wide_produce_makes_room_again_where_others_have_used_it_up_since(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: FetchWorld) -> None:
        producer = Producer(world)
        producer.send(("orders", dict.fromkeys(range(MANY), BATCH)))
        await producer.settle()
        assert len(producer.answers()) == 1
        append = WideProduces._append

        def later(*arguments: Any) -> Any:
            """The request is admitted; before it is appended some logs need new segments."""
            for replica in list(world.replicas)[::100]:
                replica.partition.log.roll_is_due = True
            return append(*arguments)

        monkeypatch.setattr(WideProduces, "_append", later)
        producer.send(("orders", dict.fromkeys(range(MANY), BATCH)))
        assert {code for _, _, code in codes(await producer.answer())} == {0}
        assert all(replica.partition.log.log_end_offset == 2 for replica in world.replicas)

    run(test, partitions=MANY)


def test_a_wide_produce_is_appended_as_it_came_even_if_its_connection_is_put_out_meanwhile() -> None:
    async def test(world: FetchWorld) -> None:
        producer = Producer(world)
        producer.send(("orders", dict.fromkeys(range(MANY), BATCH)))
        await settle(10)
        memory = world.server.frame_memory
        received_bytes = memory.in_use_bytes
        assert received_bytes > MANY * len(BATCH)
        producer.connection.put_out("answers")
        others = memory.take(received_bytes)
        others[:] = b"\xff" * len(others)
        await producer.settle()
        for replica in world.replicas:
            planned = replica.partition.log.plan(0, up_to_end_offset=1, size_bytes_max=1_000, at_least_one_batch=True)
            assert planned is not None
            data = planned.take_nowait()
            assert data is None or bytes(data)[PAST_STAMPS:] == BATCH[PAST_STAMPS:]
        producer.connection.connection_lost(None)
        assert memory.in_use_bytes == 0

    run(test, partitions=MANY)


@pytest.mark.parametrize("version", [3, 9, 13])
def test_few_elements_are_counted_and_many_are_not(version: int) -> None:
    def counted(*partitions: int) -> int:
        topics = [
            ProduceRequest.TopicProduceData(
                name="" if version == 13 else "a topic",
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=n, records=memoryview(BATCH)) for n in range(count)
                ],
            )
            for count in partitions
        ]
        body = request_header(0, version, 7, "test", flexible=version >= 9)
        body += request_encoder(0, version)(ProduceRequest(transactional_id="id", topic_data=topics))
        return count_elements(memoryview(body), 0, len(body), version)

    assert counted() == 0
    assert counted(1, 0, 7) == 11
    assert counted(ELEMENTS_BY_HAND - 1) == ELEMENTS_BY_HAND
    assert counted(ELEMENTS_BY_HAND) > ELEMENTS_BY_HAND
    assert counted(*[1] * 300) > ELEMENTS_BY_HAND
    assert counted(10_000) > ELEMENTS_BY_HAND


def test_what_can_not_be_counted_is_left_to_the_codec() -> None:
    assert count_elements(memoryview(bytes([0, 0, 0, 9]) + b"\xff" * 40), 0, 44, 9) > ELEMENTS_BY_HAND
    assert count_elements(memoryview(bytes(8)), 0, 8, 9) > ELEMENTS_BY_HAND
