"""What other clients write, the internal client reads: from anywhere, to the end or on and on, across restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from confluent_kafka import Producer as ConfluentProducer

from headpond.client import Client, ClientError
from headpond.client.admin import EARLIEST, LATEST, MAX_TIMESTAMP, Admin
from headpond.client.consumer import FetchedBatch, Reader, RecordView
from headpond.client.offsets import Isolation
from headpond.model import ErrorCode, TopicPartition
from support.broker import BrokerProcess
from support.clients.base import Sent
from support.clients.confluent import ConfluentClient
from support.internal_client import run_with_client
from support.waiting import eventually


def records_of(batches: Sequence[FetchedBatch]) -> list[RecordView]:
    return [record for batch in batches for record in batch.records]


async def read(
    client: Client, starts: dict[TopicPartition, int], isolation: Isolation = "read_committed"
) -> list[RecordView]:
    async with Reader(client, starts, isolation=isolation) as reader:
        return records_of([batch async for batch in reader])


def create(bootstrap: str, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    run_with_client(bootstrap, lambda client: Admin(client).create_topic(name, partitions, 1, configs))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_we_read_what_librdkafka_wrote_in_every_codec(bootstrap: str, topic_name: str, codec: str) -> None:
    create(bootstrap, topic_name)
    sent = [Sent(b"v%d" % n * 30, b"k%d" % n, [("h", b"%d" % n)], 1_600_000_000_000 + n) for n in range(300)]
    ConfluentClient(bootstrap).produce(topic_name, sent, codec=codec)
    found = run_with_client(bootstrap, lambda client: read(client, {TopicPartition(topic_name, 0): EARLIEST}))
    expected = [(n, one.timestamp_ms, one.key, one.value, tuple(one.headers)) for n, one in enumerate(sent)]
    assert [tuple(record)[1:] for record in found] == expected


def test_many_partitions_and_more_than_one_answer_holds(bootstrap: str, topic_name: str) -> None:
    create(bootstrap, topic_name, 5)
    other = ConfluentClient(bootstrap)
    for partition in range(5):
        other.produce(topic_name, [Sent(bytes(50_000)) for _ in range(40)], partition=partition)

    async def scenario(client: Client) -> list[RecordView]:
        starts = {TopicPartition(topic_name, partition): partition for partition in range(5)}
        async with Reader(client, starts, max_bytes=300_000, partition_max_bytes=100_000) as reader:
            return records_of([batch async for batch in reader])

    found = run_with_client(bootstrap, scenario)
    for partition in range(5):
        assert [one.offset for one in found if one.tp.partition == partition] == list(range(partition, 40))


def test_whole_answers_can_be_taken_at_once_and_the_end_is_an_empty_one(bootstrap: str, topic_name: str) -> None:
    create(bootstrap, topic_name, 2)
    other = ConfluentClient(bootstrap)
    for partition in range(2):
        other.produce(topic_name, [Sent(bytes(50_000)) for _ in range(20)], partition=partition)

    async def scenario(client: Client) -> list[RecordView]:
        starts = {TopicPartition(topic_name, partition): 3 for partition in range(2)}
        found: list[RecordView] = []
        async with Reader(client, starts, max_bytes=300_000, partition_max_bytes=100_000) as reader:
            while batches := await reader.take():
                found += records_of(batches)
                assert reader.position(batches[-1].tp) == batches[-1].next_offset
            assert await reader.take() == []
        return found

    found = run_with_client(bootstrap, scenario)
    for partition in range(2):
        assert [one.offset for one in found if one.tp.partition == partition] == list(range(3, 20))


def test_a_follower_sees_records_as_they_come(bootstrap: str, topic_name: str) -> None:
    create(bootstrap, topic_name)
    other = ConfluentClient(bootstrap)
    other.produce(topic_name, [Sent(b"before")])

    async def scenario(client: Client) -> list[bytes | None]:
        async with Reader(client, {TopicPartition(topic_name, 0): LATEST}, follow=True) as reader:
            first = asyncio.ensure_future(anext(reader))
            await asyncio.to_thread(eventually, lambda: reader.position(TopicPartition(topic_name, 0)) == 1)
            await asyncio.to_thread(other.produce, topic_name, [Sent(b"one")])
            values = [record.value for record in (await first).records]
            await asyncio.to_thread(other.produce, topic_name, [Sent(b"two")])
            return values + [record.value for record in (await anext(reader)).records]

    assert run_with_client(bootstrap, scenario) == [b"one", b"two"]


def test_offsets_are_listed_by_place_and_time_and_follow_deletions(bootstrap: str, topic_name: str) -> None:
    create(bootstrap, topic_name)
    tp = TopicPartition(topic_name, 0)
    # Recent times: a real Kafka takes only such where the settings are its defaults, and deletes what is old.
    base = 1_700_000_000_000
    other = ConfluentClient(bootstrap)
    for n in range(10):
        other.produce(topic_name, [Sent(b"x", timestamp_ms=base + (20 if n == 4 else n))])

    async def scenario(client: Client) -> None:
        admin = Admin(client)
        spots = [(await admin.list_offsets({tp: spec}))[tp] for spec in (EARLIEST, LATEST, MAX_TIMESTAMP, base + 7)]
        assert [spot.offset for spot in spots] == [0, 10, 4, 4]
        assert spots[2].timestamp_ms == base + 20
        assert (await admin.list_offsets({tp: base + 1_000}))[tp].offset == -1
        assert await admin.delete_records({tp: 6}) == {tp: 6}
        assert [record.offset for record in await read(client, {tp: EARLIEST})] == [6, 7, 8, 9]
        with pytest.raises(ClientError) as caught:
            await read(client, {tp: 2})
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
        async with Reader(client, {tp: 2}, offset_reset="earliest") as reader:
            assert [record.offset for record in records_of([batch async for batch in reader])] == [6, 7, 8, 9]

    run_with_client(bootstrap, scenario)


def test_aborted_transactions_are_left_out_under_read_committed(bootstrap: str, topic_name: str) -> None:
    create(bootstrap, topic_name)
    producer = ConfluentProducer({"bootstrap.servers": bootstrap, "transactional.id": topic_name})
    producer.init_transactions()
    for number, is_kept in enumerate((True, False, True, False)):
        producer.begin_transaction()
        for index in range(3):
            producer.produce(topic_name, value=b"%d-%d" % (number, index))
        producer.flush()
        if is_kept:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    tp = TopicPartition(topic_name, 0)

    def values(isolation: Isolation) -> list[bytes | None]:
        found = run_with_client(bootstrap, lambda client: read(client, {tp: EARLIEST}, isolation))
        return [record.value for record in found]

    assert values("read_committed") == [b"%d-%d" % (number, index) for number in (0, 2) for index in range(3)]
    assert values("read_uncommitted") == [b"%d-%d" % (number, index) for number in range(4) for index in range(3)]


def test_a_follower_survives_restarts_of_the_broker(make_broker: Callable[..., BrokerProcess], topic_name: str) -> None:
    broker = make_broker().start()
    create(broker.bootstrap_servers, topic_name)

    async def scenario(client: Client) -> list[bytes | None]:
        found: list[bytes | None] = []
        async with Reader(client, {TopicPartition(topic_name, 0): EARLIEST}, follow=True) as reader:
            for is_kill in (False, True, False):
                other = ConfluentClient(broker.bootstrap_servers)
                await asyncio.to_thread(other.produce, topic_name, [Sent(b"%d" % len(found))])
                found += [record.value for record in (await anext(reader)).records]
                await asyncio.to_thread(broker.restart, kill=is_kill)
        return found

    assert run_with_client(broker.bootstrap_servers, scenario) == [b"0", b"1", b"2"]
