"""Transactions with real clients: all of one becomes visible or nothing, records and consumed offsets alike.

These clients speak the first protocol (AddPartitionsToTxn before Produce), also to a broker that has finalized the
second one (``transaction.version`` 2), which they do not know. The Java client speaks that: see ``tests/interop``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from aiokafka.structs import TopicPartition as AioPartition
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaProducer, OffsetAndMetadata
from kafka import TopicPartition as KafkaPythonPartition
from kafka.errors import ProducerFencedError

from support.verbs import create_topic
from support.wire import Wire

WAIT_S = 30.0


def producer_of(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(WAIT_S)
    return producer


def committed_values(bootstrap: str, topic: str, count: int) -> list[str]:
    """The first ``count`` values that a read_committed consumer sees."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while len(found) < count:
        message = consumer.poll(WAIT_S)
        assert message is not None, f"only {found}"
        assert message.error() is None, message.error()
        found.append(message.value().decode())
    consumer.close()
    return found


def committed_offset(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=WAIT_S)
    consumer.close()
    return int(found.offset)


def test_a_committed_transaction_is_seen_whole_and_an_aborted_one_not_at_all(
    wire: Wire, bootstrap: str, topic_name: str
) -> None:
    create_topic(wire, topic_name)
    producer = producer_of(bootstrap, topic_name)
    for number in range(4):
        producer.begin_transaction()
        for letter in "ab":
            producer.produce(topic_name, f"{number}{letter}")
        if number % 2:
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)
    assert committed_values(bootstrap, topic_name, 4) == ["0a", "0b", "2a", "2b"]


def test_offsets_of_a_transaction_count_when_it_is_committed_and_only_then(
    wire: Wire, bootstrap: str, topic_name: str
) -> None:
    create_topic(wire, topic_name)
    group = f"{topic_name}-group"
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic_name])
    producer = producer_of(bootstrap, topic_name)
    producer.begin_transaction()
    producer.produce(topic_name, "input")
    producer.commit_transaction(WAIT_S)
    message = consumer.poll(WAIT_S)
    assert message is not None
    assert message.value() == b"input"
    position = [TopicPartition(topic_name, 0, message.offset() + 1)]
    for is_committed in (False, True):
        producer.begin_transaction()
        producer.produce(topic_name, f"output, {is_committed}")
        producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), WAIT_S)
        if is_committed:
            producer.commit_transaction(WAIT_S)
        else:
            producer.abort_transaction(WAIT_S)
        expected = message.offset() + 1 if is_committed else -1001  # librdkafka's word for "none"
        assert committed_offset(bootstrap, group, topic_name) == expected
    consumer.close()
    assert committed_values(bootstrap, topic_name, 2) == ["input", "output, True"]


def test_transactions_follow_each_other_without_a_pause(wire: Wire, bootstrap: str, topic_name: str) -> None:
    create_topic(wire, topic_name)
    producer = producer_of(bootstrap, topic_name)
    for number in range(40):  # the markers of one are still being written when the next begins
        producer.begin_transaction()
        producer.produce(topic_name, str(number))
        producer.commit_transaction(WAIT_S)
    assert committed_values(bootstrap, topic_name, 40) == [str(number) for number in range(40)]


def test_a_second_producer_with_the_same_id_fences_the_first(wire: Wire, bootstrap: str, topic_name: str) -> None:
    create_topic(wire, topic_name)
    first = producer_of(bootstrap, topic_name)
    first.begin_transaction()
    first.produce(topic_name, "of the first")
    first.flush(WAIT_S)
    second = producer_of(bootstrap, topic_name)
    with pytest.raises(KafkaException) as raised:
        first.commit_transaction(WAIT_S)
    assert raised.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    second.begin_transaction()
    second.produce(topic_name, "of the second")
    second.commit_transaction(WAIT_S)
    assert committed_values(bootstrap, topic_name, 1) == ["of the second"]


def test_aiokafka_commits_records_and_offsets_in_one_transaction(wire: Wire, bootstrap: str, topic_name: str) -> None:
    create_topic(wire, topic_name)
    group = f"{topic_name}-group"

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic_name)
        async with producer:
            async with producer.transaction():
                await producer.send_and_wait(topic_name, b"one")
                await producer.send_offsets_to_transaction({AioPartition(topic_name, 0): 7}, group)
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_and_wait(topic_name, b"never")
                    raise ZeroDivisionError
            async with producer.transaction():
                await producer.send_and_wait(topic_name, b"two")

    asyncio.run(run())
    assert committed_values(bootstrap, topic_name, 2) == ["one", "two"]
    assert committed_offset(bootstrap, group, topic_name) == 7


def test_an_aiokafka_producer_that_is_fenced_is_told_so(wire: Wire, bootstrap: str, topic_name: str) -> None:
    create_topic(wire, topic_name)

    async def run() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic_name) as first:
            await first.begin_transaction()
            await first.send_and_wait(topic_name, b"of the first")
            async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic_name) as second:
                with pytest.raises(ProducerFenced):
                    await first.commit_transaction()
                async with second.transaction():
                    await second.send_and_wait(topic_name, b"of the second")

    asyncio.run(run())
    assert committed_values(bootstrap, topic_name, 1) == ["of the second"]


@contextmanager
def kafka_python_producer(bootstrap: str, transactional_id: str) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
    producer.init_transactions()
    try:
        yield producer
    finally:
        producer.close(timeout=WAIT_S)


def test_kafka_python_commits_records_and_offsets_in_one_transaction(
    wire: Wire, bootstrap: str, topic_name: str
) -> None:
    create_topic(wire, topic_name)
    group = f"{topic_name}-group"
    with kafka_python_producer(bootstrap, topic_name) as producer:
        for number, is_committed in enumerate((True, False, True)):
            producer.begin_transaction()
            producer.send(topic_name, str(number).encode())
            position = {KafkaPythonPartition(topic_name, 0): OffsetAndMetadata(number + 1, "", -1)}
            producer.send_offsets_to_transaction(position, group)
            if is_committed:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
                assert committed_offset(bootstrap, group, topic_name) == 1
    assert committed_values(bootstrap, topic_name, 2) == ["0", "2"]
    assert committed_offset(bootstrap, group, topic_name) == 3


def test_a_kafka_python_producer_that_is_fenced_is_told_so(wire: Wire, bootstrap: str, topic_name: str) -> None:
    create_topic(wire, topic_name)
    with kafka_python_producer(bootstrap, topic_name) as first:
        first.begin_transaction()
        first.send(topic_name, b"of the first").get(timeout=WAIT_S)
        with kafka_python_producer(bootstrap, topic_name) as second:
            with pytest.raises(ProducerFencedError):
                first.commit_transaction()
            second.begin_transaction()
            second.send(topic_name, b"of the second")
            second.commit_transaction()
    assert committed_values(bootstrap, topic_name, 1) == ["of the second"]
