"""Batches that somebody else has finished: written once each, in order, and nothing after the first failure."""

from __future__ import annotations

import pytest

from headpond.client import Client, ClientError
from headpond.client.finished import BatchProducer
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.reader import read_records
from headpond.protocol.records.record import Record
from unit.client.memory_cluster import DROP_AFTER, DROP_BEFORE, SWALLOW, Fault, Log, MemoryCluster

TOO_LARGE, NOT_LEADER, BAD_EPOCH = 10, 6, 47


def finished(*values: bytes) -> tuple[bytearray, int]:
    records = [Record(offset, 1_000, None, value) for offset, value in enumerate(values)]
    return bytearray(build_batch(records, base_offset=0)), len(records)


def written(log: Log) -> list[bytes]:
    return [record.value or b"" for batch in log.batches for record in read_records(batch)]


async def send_numbers(client: Client, partitions: int, count: int) -> None:
    async with BatchProducer(client, buffer_bytes_max=300) as producer:
        for number in range(count):
            await producer.send(
                [
                    (TopicPartition("t", partition), *finished(b"%d" % number, b"%d+" % number))
                    for partition in range(partitions)
                ]
            )
        await producer.flush()


@pytest.mark.parametrize("fault", [DROP_BEFORE, DROP_AFTER, SWALLOW, NOT_LEADER])
def test_batches_are_written_once_and_in_order_whatever_becomes_of_their_requests(fault: Fault) -> None:
    cluster = MemoryCluster(nodes=2)
    logs = cluster.add_topic("t", partitions=3)
    asked = 0

    def faults(node: int, request: object) -> Fault:
        nonlocal asked
        asked += type(request).__name__ == "ProduceRequest"
        return fault if type(request).__name__ == "ProduceRequest" and asked % 3 == 1 else None

    cluster.faults = faults
    cluster.run(lambda client: send_numbers(client, 3, 20))
    for log in logs:
        assert written(log) == [text for number in range(20) for text in (b"%d" % number, b"%d+" % number)]


@pytest.mark.parametrize("code", [TOO_LARGE, BAD_EPOCH])
def test_the_first_failure_is_the_last_thing_that_happens(code: int) -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")

    def faults(node: int, request: object) -> Fault:
        return code if type(request).__name__ == "ProduceRequest" and len(log.batches) == 2 else None

    cluster.faults = faults

    async def scenario(client: Client) -> None:
        async with BatchProducer(client) as producer:
            tp = TopicPartition("t", 0)
            await producer.send([(tp, *finished(b"%d" % number)) for number in range(10)])
            with pytest.raises(ClientError) as caught:
                await producer.flush()
            assert caught.value.code is ErrorCode(code)
            cluster.faults = lambda node, request: None
            with pytest.raises(ClientError) as again:
                await producer.send([(tp, *finished(b"late"))])
            assert again.value.code is ErrorCode(code)

    cluster.run(scenario)
    assert written(log) == [b"0", b"1"]


def test_who_waits_for_memory_is_told_of_a_failure() -> None:
    cluster = MemoryCluster()
    cluster.add_topic("t")
    cluster.faults = lambda node, request: TOO_LARGE if type(request).__name__ == "ProduceRequest" else None

    async def scenario(client: Client) -> None:
        async with BatchProducer(client, buffer_bytes_max=100) as producer:
            with pytest.raises(ClientError):
                await producer.send([(TopicPartition("t", 0), *finished(b"x" * 80)) for _ in range(5)])

    cluster.run(scenario)


def test_a_partition_that_does_not_exist_fails_the_flush() -> None:
    cluster = MemoryCluster()
    cluster.add_topic("t")

    async def scenario(client: Client) -> None:
        async with BatchProducer(client, delivery_timeout_s=10.0) as producer:
            await producer.send([(TopicPartition("t", 7), *finished(b"x"))])
            with pytest.raises(ClientError, match="there is no partition 7 in t, which has 1"):
                await producer.flush()

    cluster.run(scenario)
