"""The internal client's producer: each record once, in order, whatever becomes of brokers, leaders and connections."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from headpond.client import Client, ClientError
from headpond.client.outbox import Identity, Memory, Outgoing, Record
from headpond.client.producer import Delivery, Producer
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.records.header import read_header
from headpond.protocol.records.reader import read_records
from unit.client.memory_cluster import DROP_AFTER, DROP_BEFORE, SWALLOW, Fault, Log, MemoryCluster

NOT_LEADER, TIMED_OUT, TOO_LARGE, TOO_FEW_REPLICAS, LOADING, UNKNOWN_PRODUCER, FORBIDDEN = 6, 7, 10, 19, 14, 59, 29


def written(log: Log) -> list[bytes | None]:
    return [record.value for batch in log.batches for record in read_records(batch)]


def values(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def on_produce(*faults: Fault) -> Any:
    """The first Produce requests meet these, the later ones none."""
    left = list(faults)
    return lambda node, request: left.pop(0) if left and type(request).__name__ == "ProduceRequest" else None


async def send_all(client: Client, count: int = 5, **options: Any) -> list[int | ErrorCode]:
    """Send ``count`` records one batch after the other; each one's offset or error."""
    outcomes: list[int | ErrorCode] = []
    async with Producer(client, **options) as producer:
        for value in values(count):
            try:
                outcomes.append((await (await producer.send("t", 0, Record(None, value)))).offset)
            except ClientError as error:
                outcomes.append(error.code)
    return outcomes


@pytest.mark.parametrize("fault", [DROP_BEFORE, DROP_AFTER, SWALLOW, NOT_LEADER, TIMED_OUT, TOO_FEW_REPLICAS])
def test_what_a_later_attempt_may_better_is_sent_again_and_written_once(fault: Fault) -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    cluster.faults = on_produce(None, fault, fault, None, fault)
    assert cluster.run(send_all) == [0, 1, 2, 3, 4]
    assert written(log) == values(5)


@pytest.mark.parametrize(("fault", "count"), [(DROP_AFTER, 1), (SWALLOW, 1), (DROP_BEFORE, 0), (TIMED_OUT, 0)])
def test_without_idempotence_an_unknown_outcome_is_told_and_nothing_is_written_twice(fault: Fault, count: int) -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    cluster.faults = on_produce(fault)

    async def scenario(client: Client) -> None:
        async with Producer(client, acks=1) as producer:
            with pytest.raises(ClientError) as caught:
                await (await producer.send("t", 0, Record(None, b"x")))
            assert caught.value.is_outcome_unknown

    cluster.run(scenario)
    assert len(written(log)) == count
    assert not cluster.asked("InitProducerId")


def test_without_idempotence_a_refusal_is_tried_again() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    cluster.faults = on_produce(NOT_LEADER, TOO_FEW_REPLICAS)
    assert cluster.run(lambda client: send_all(client, acks=1)) == [0, 1, 2, 3, 4]
    assert written(log) == values(5)


def test_a_record_refused_for_good_fails_alone_and_leaves_its_sequence_to_the_next() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    cluster.faults = on_produce(None, FORBIDDEN)
    assert cluster.run(send_all) == [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED, 1, 2, 3]
    sequences = [(read_header(batch).producer_epoch, read_header(batch).base_sequence) for batch in log.batches]
    assert sequences == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_a_batch_whose_outcome_stays_unknown_starts_a_new_epoch() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    eaten = 0

    def faults(node: int, request: Any) -> Fault:
        nonlocal eaten
        if type(request).__name__ != "ProduceRequest" or cluster.clock.monotonic() > 20 or not log.batches:
            return None
        eaten += 1
        return SWALLOW

    cluster.faults = faults
    outcomes = cluster.run(lambda client: send_all(client, 3, delivery_timeout_s=12))
    assert outcomes[:2] == [0, ErrorCode.REQUEST_TIMED_OUT]
    assert eaten > 1, "it was tried again"
    assert written(log) == values(3), "the second was written, though nobody could say so, and once"
    assert [read_header(batch).producer_epoch for batch in log.batches] == [0, 0, 1]


def test_a_producer_that_the_broker_forgot_goes_on_in_a_new_epoch() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    cluster.faults = on_produce(None, UNKNOWN_PRODUCER)
    assert cluster.run(send_all) == [0, 1, 2, 3, 4]
    assert [read_header(batch).producer_epoch for batch in log.batches] == [0, 1, 1, 1, 1]


def test_a_batch_that_is_too_large_for_the_broker_is_halved_until_it_fits() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")

    def faults(node: int, request: Any) -> Fault:
        if type(request).__name__ != "ProduceRequest":
            return None
        return TOO_LARGE if len(request.topic_data[0].partition_data[0].records) > 200 else None

    cluster.faults = faults

    async def scenario(client: Client) -> list[int]:
        async with Producer(client, compression="gzip") as producer:
            deliveries = [await producer.send("t", 0, Record(b"k", value)) for value in values(100)]
            await producer.flush()
            assert all(delivery.done() for delivery in deliveries)
            with pytest.raises(ClientError) as caught:
                await (await producer.send("t", 0, Record(None, random.Random(0).randbytes(400))))
            assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
            return [(await delivery).offset for delivery in deliveries]

    assert cluster.run(scenario) == list(range(100))
    assert written(log) == values(100)


def test_a_record_larger_than_a_request_is_refused_before_anything_is_asked() -> None:
    cluster = MemoryCluster()

    async def scenario(client: Client) -> None:
        async with Producer(client, request_bytes_max=10_000) as producer:
            with pytest.raises(ClientError) as caught:
                await producer.send("t", 0, Record(None, bytes(10_000)))
            assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE

    cluster.run(scenario)
    assert not cluster.requests


def test_a_topic_or_partition_that_does_not_exist_is_refused_by_name() -> None:
    cluster = MemoryCluster()
    cluster.add_topic("t", 2)

    async def scenario(client: Client) -> None:
        async with Producer(client) as producer:
            with pytest.raises(ClientError, match="there is no topic nope"):
                await producer.send("nope", None, Record(None, b"x"))
            with pytest.raises(ClientError, match="there is no partition 2 in t, which has 2"):
                await producer.send("t", 2, Record(None, b"x"))

    cluster.run(scenario)


def test_the_leader_is_followed_when_it_moves_and_when_its_broker_dies() -> None:
    cluster = MemoryCluster(nodes=3)
    (log,) = cluster.add_topic("t")

    async def scenario(client: Client) -> None:
        async with Producer(client) as producer:
            for number in range(30):
                if number == 10:
                    cluster.move_leader(log, 2)
                if number == 20:
                    cluster.stop(2)
                    cluster.move_leader(log, 3)
                await (await producer.send("t", 0, Record(None, b"%d" % number)))

    cluster.run(scenario)
    assert written(log) == values(30)


def test_lingering_records_share_a_batch_and_a_request_carries_many_partitions() -> None:
    cluster = MemoryCluster()
    logs = cluster.add_topic("t", 4)

    async def scenario(client: Client) -> None:
        async with Producer(client, linger_ms=50) as producer:
            for number in range(40):
                await producer.send("t", number % 4, Record(None, b"x"))
            await client.clock.sleep(0.06)
            assert [len(log.batches) for log in logs] == [1, 1, 1, 1]

    cluster.run(scenario)
    assert len(cluster.asked("Produce")) == 1


def test_memory_is_bounded_and_a_sender_waits_for_it() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    cluster.faults = lambda node, request: NOT_LEADER if type(request).__name__ == "ProduceRequest" else None

    async def scenario(client: Client) -> None:
        async with Producer(client, buffer_bytes_max=10_000, linger_ms=100_000) as producer:
            for _ in range(9):
                await producer.send("t", 0, Record(None, bytes(1_000)))
            late = asyncio.ensure_future(producer.send("t", 0, Record(None, bytes(1_000))))
            await client.clock.sleep(1)
            assert not late.done()
            cluster.faults = lambda node, request: None
            await (await late)

    cluster.run(scenario)
    assert len(written(log)) == 10


def test_a_sender_that_waits_too_long_for_memory_is_told_and_takes_none() -> None:
    cluster = MemoryCluster()
    cluster.add_topic("t")
    cluster.faults = lambda node, request: NOT_LEADER if type(request).__name__ == "ProduceRequest" else None

    async def scenario(client: Client) -> None:
        producer = Producer(client, buffer_bytes_max=2_000)
        first = await producer.send("t", 0, Record(None, bytes(1_500)))
        with pytest.raises(ClientError) as caught:
            await producer.send("t", 0, Record(None, bytes(1_500)))
        assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
        cluster.faults = lambda node, request: None
        assert (await first).offset == 0
        assert (await (await producer.send("t", 0, Record(None, bytes(1_500))))).offset == 1
        await producer.close()

    cluster.run(scenario)


def test_an_abrupt_end_fails_what_has_no_outcome_and_says_whether_it_may_have_been_written() -> None:
    cluster = MemoryCluster()
    cluster.add_topic("t", 2)
    cluster.faults = lambda node, request: SWALLOW if type(request).__name__ == "ProduceRequest" else None

    async def scenario(client: Client) -> list[bool]:
        deliveries: list[Delivery] = []
        with pytest.raises(ZeroDivisionError):
            async with Producer(client, linger_ms=1_000) as producer:
                deliveries.append(await producer.send("t", 0, Record(None, b"sent")))
                await client.clock.sleep(2)
                deliveries.append(await producer.send("t", 1, Record(None, b"waiting")))
                raise ZeroDivisionError
        unknown = []
        for delivery in deliveries:
            with pytest.raises(ClientError) as caught:
                await delivery
            unknown.append(caught.value.is_outcome_unknown)
        return unknown

    assert cluster.run(scenario) == [True, False]


def test_a_producer_id_is_asked_for_until_a_broker_has_one() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    left = [LOADING, DROP_AFTER, LOADING]
    cluster.faults = lambda node, request: left.pop(0) if left and "InitProducer" in type(request).__name__ else None
    assert cluster.run(send_all) == [0, 1, 2, 3, 4]
    assert written(log) == values(5)


def test_acks_0_waits_for_no_answer_and_knows_no_offset() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    assert cluster.run(lambda client: send_all(client, acks=0)) == [-1] * 5
    assert written(log) == values(5)


def test_an_idempotent_producer_needs_all_acks() -> None:
    cluster = MemoryCluster()

    async def scenario(client: Client) -> None:
        with pytest.raises(ValueError, match="acks=-1"):
            Producer(client, acks=1, idempotent=True)

    cluster.run(scenario)


def test_sequences_wrap_and_epochs_run_out() -> None:
    async def scenario(client: Client) -> None:
        from headpond.client.outbox import PartitionQueue

        queue = PartitionQueue(TopicPartition("t", 0))
        queue.identity = Identity(1, 32_766, 2**31 - 1)
        batch = Outgoing(queue.tp, 0.0, 0, None)
        batch.append(Record(None, b"x"), 0, 1)
        batch.append(Record(None, b"y"), 0, 1)
        queue.batches.append(batch)
        queue.head_succeeded()
        assert queue.identity == Identity(1, 32_766, 1)
        queue.change_identity()
        assert queue.identity is None, "another producer id is needed"

    MemoryCluster().run(scenario)


def test_memory_is_given_in_the_order_of_asking_and_nobody_overtakes() -> None:
    async def scenario(client: Client) -> None:
        memory = Memory(100)
        assert memory.try_take(90)
        large, small = memory.queue_up(50), memory.queue_up(5)
        assert not memory.try_take(1), "others wait already"
        memory.give_up(large, 50)
        await asyncio.sleep(0)
        assert small.done()
        memory.release(90)
        memory.release(5)
        assert memory.used_bytes == 0

    MemoryCluster().run(scenario)


@pytest.mark.parametrize("seed", range(12))
def test_a_storm_of_faults_neither_loses_nor_repeats_nor_reorders(seed: int) -> None:
    chance = random.Random(seed)
    cluster = MemoryCluster(nodes=3)
    logs = cluster.add_topic("t", 3)

    def faults(node: int, request: Any) -> Fault:
        if chance.random() < 0.05:
            cluster.move_leader(chance.choice(logs), chance.choice(cluster.nodes))
        if cluster.clock.monotonic() > 60 or chance.random() > 0.4:
            return None
        if type(request).__name__ == "ProduceRequest":
            return chance.choice([DROP_BEFORE, DROP_AFTER, SWALLOW, NOT_LEADER, TOO_FEW_REPLICAS, TIMED_OUT])
        return chance.choice([DROP_BEFORE, DROP_AFTER, SWALLOW])

    cluster.faults = faults

    async def scenario(client: Client) -> None:
        async with Producer(client, batch_size_bytes=300, delivery_timeout_s=10_000) as producer:
            deliveries = []
            for number in range(300):
                for partition in range(3):
                    try:
                        deliveries.append(await producer.send("t", partition, Record(None, b"%d" % number)))
                    except ClientError:
                        # The topic could not be asked about yet: nothing was taken, so the same is sent again.
                        while True:
                            try:
                                deliveries.append(await producer.send("t", partition, Record(None, b"%d" % number)))
                                break
                            except ClientError:
                                continue
                if chance.random() < 0.1:
                    await client.clock.sleep(chance.random() / 10)
            places = [await delivery for delivery in deliveries]
            assert [place.offset for place in places] == [number for number in range(300) for _ in range(3)]

    cluster.run(scenario)
    assert [written(log) for log in logs] == [values(300)] * 3
