"""What the internal client writes, other clients read: the same bytes, in the same partitions, each record once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest
from confluent_kafka import Producer as ConfluentProducer

from headpond.client import Client, ClientError
from headpond.client.admin import Admin, ConfigResource
from headpond.client.producer import Producer, Record
from headpond.model import ErrorCode
from support.broker import BrokerProcess
from support.clients.confluent import ConfluentClient
from support.internal_client import run_with_client

HEADERS = (("trace", b"\x00\xff"), ("empty", b""), ("null", None))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_reads_what_we_wrote_in_every_codec(bootstrap: str, topic_name: str, codec: str) -> None:
    async def scenario(client: Client) -> list[int]:
        await Admin(client).create_topic(topic_name, 1, 1)
        async with Producer(client, compression=codec) as producer:  # type: ignore[arg-type]
            records = [Record(b"k%d" % n, b"v%d" % n * 50, HEADERS, 1_600_000_000_000 + n) for n in range(500)]
            records += [Record(None, None), Record(b"", b"")]
            deliveries = [await producer.send(topic_name, 0, record) for record in records]
            return [(await delivery).offset for delivery in deliveries]

    assert run_with_client(bootstrap, scenario) == list(range(502))
    found = ConfluentClient(bootstrap).consume(topic_name, 502)
    assert [(one.key, one.value) for one in found[:500]] == [(b"k%d" % n, b"v%d" % n * 50) for n in range(500)]
    assert found[7].headers == list(HEADERS)
    assert [one.timestamp_ms for one in found[:500]] == [1_600_000_000_000 + n for n in range(500)]
    assert [(one.key, one.value) for one in found[500:]] == [(None, None), (b"", b"")]


def test_keys_go_to_the_partitions_that_librdkafkas_murmur2_chooses(bootstrap: str, topic_name: str) -> None:
    keys = [b"", b"a", b"ab", b"abc", b"abcd", *(b"key-%d" % n for n in range(200)), bytes(range(256))]

    async def scenario(client: Client) -> list[int]:
        await Admin(client).create_topic(topic_name, 7, 1)
        async with Producer(client) as producer:
            deliveries = [await producer.send(topic_name, None, Record(key, b"x")) for key in keys]
            return [(await delivery).partition for delivery in deliveries]

    ours = run_with_client(bootstrap, scenario)
    theirs: dict[bytes, int] = {}
    producer = ConfluentProducer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(
            topic_name, key=key, on_delivery=lambda error, message, key=key: theirs.update({key: message.partition()})
        )
    assert producer.flush(30) == 0
    assert ours == [theirs[key] for key in keys]


def test_records_without_a_key_reach_all_partitions_in_few_batches(bootstrap: str, topic_name: str) -> None:
    async def scenario(client: Client) -> list[int]:
        await Admin(client).create_topic(topic_name, 4, 1)
        async with Producer(client, batch_size_bytes=2_000) as producer:
            deliveries = [await producer.send(topic_name, None, Record(None, bytes(100))) for _ in range(1_000)]
            return [(await delivery).partition for delivery in deliveries]

    chosen = run_with_client(bootstrap, scenario)
    assert set(chosen) == {0, 1, 2, 3}
    switches = sum(before != after for before, after in itertools.pairwise(chosen))
    assert switches < 100


def test_a_batch_that_the_topic_does_not_take_is_halved_and_a_record_alone_is_refused(
    bootstrap: str, topic_name: str
) -> None:
    async def scenario(client: Client) -> list[int]:
        await Admin(client).create_topic(topic_name, 1, 1, {"max.message.bytes": "2000"})
        async with Producer(client) as producer:
            deliveries = [await producer.send(topic_name, 0, Record(None, b"%d" % n * 100)) for n in range(100)]
            too_large = await producer.send(topic_name, 0, Record(None, bytes(3_000)))
            last = await producer.send(topic_name, 0, Record(None, b"last"))
            with pytest.raises(ClientError) as caught:
                await too_large
            assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
            return [(await delivery).offset for delivery in [*deliveries, last]]

    assert run_with_client(bootstrap, scenario) == list(range(101))


def test_a_record_that_the_broker_minds_is_named_and_its_company_is_told_why(bootstrap: str, topic_name: str) -> None:
    async def scenario(client: Client) -> list[str]:
        admin = Admin(client)
        await admin.create_topic(topic_name, 1, 1, {"cleanup.policy": "compact"})
        assert (await admin.describe_configs(ConfigResource("topic", topic_name), ["cleanup.policy"]))[0].value
        async with Producer(client, linger_ms=50) as producer:
            deliveries = [await producer.send(topic_name, 0, Record(key, b"x")) for key in (b"a", None, b"b")]
            messages = []
            for delivery in deliveries:
                with pytest.raises(ClientError) as caught:
                    await delivery
                assert caught.value.code is ErrorCode.INVALID_RECORD
                messages.append(caught.value.message)
            return messages

    first, minded, second = run_with_client(bootstrap, scenario)
    assert first == second != minded
    assert "another record of the same batch" in first


def test_kills_of_the_broker_under_load_neither_lose_nor_repeat_a_record(
    make_broker: Callable[..., BrokerProcess], topic_name: str
) -> None:
    broker = make_broker().start()
    count = 3_000

    async def scenario(client: Client) -> list[int]:
        await Admin(client).create_topic(topic_name, 1, 1)
        deliveries = []
        async with Producer(client, batch_size_bytes=1_000, linger_ms=0) as producer:
            for number in range(count):
                deliveries.append(await producer.send(topic_name, 0, Record(None, b"%d" % number)))
                if number % 100 == 99:
                    await deliveries[-50]
                if number in (700, 1_900):
                    await asyncio.to_thread(broker.restart, kill=True)
            return [(await delivery).offset for delivery in deliveries]

    assert run_with_client(broker.bootstrap_servers, scenario) == list(range(count))
    found = ConfluentClient(broker.bootstrap_servers).consume(topic_name, count)
    assert [one.value for one in found] == [b"%d" % number for number in range(count)]
