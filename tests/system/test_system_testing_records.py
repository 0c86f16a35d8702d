"""``Broker.produce`` and ``Broker.consume``: records in and out of a test without a client library."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from headpond.testing import Broker, BrokerFailed, Record, StoredRecord


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(settings={"num.partitions": 3}) as running:
        yield running


def test_what_is_written_is_read_as_it_is(broker: Broker, topic_name: str) -> None:
    broker.create_topic(topic_name)
    records = [
        "text",
        b"\xff\x00",
        ("key", "value"),
        (b"tombstone", None),
        Record("all", key="k", headers={"a": "1", "b": None}, timestamp_ms=5),
    ]
    written = broker.produce(topic_name, records)
    read = broker.consume(topic_name)
    assert [(one.key, one.value) for one in read] == [
        (None, b"text"),
        (None, b"\xff\x00"),
        (b"key", b"value"),
        (b"tombstone", None),
        (b"k", b"all"),
    ]
    assert [one.offset for one in read] == [one.offset for one in written] == [0, 1, 2, 3, 4]
    assert read[-1] == written[-1] == Record(b"all", b"k", (("a", b"1"), ("b", None)), 5, 0, 4, topic_name)


def test_what_was_read_can_be_written_again(broker: Broker, topic_name: str) -> None:
    broker.produce(topic_name, [Record("all", key="k", headers={"a": "1"}, timestamp_ms=5)])
    (read,) = broker.consume(topic_name)
    (again,) = broker.produce(topic_name, [read])
    assert again == read._replace(offset=read.offset + 1)


def test_records_come_by_partition_and_offset_and_can_be_chosen(broker: Broker, topic_name: str) -> None:
    broker.create_topic(topic_name, partitions=3)
    broker.produce(topic_name, [Record(str(number), partition=number % 3) for number in range(9)])
    assert [one.value for one in broker.consume(topic_name)] == [
        b"%d" % number for number in (0, 3, 6, 1, 4, 7, 2, 5, 8)
    ]
    assert [one.value for one in broker.consume(topic_name, partition=1)] == [b"1", b"4", b"7"]
    assert [one.value for one in broker.consume(topic_name, from_offset=2)] == [b"6", b"7", b"8"]


def test_a_topic_comes_into_being_with_its_first_record(broker: Broker, topic_name: str) -> None:
    written = broker.produce(topic_name, [("k", "v")])
    assert broker.consume(topic_name, partition=written[0].partition)[0].key == b"k"


def test_one_may_wait_for_what_another_writes_even_into_a_topic_that_is_not_there_yet(
    broker: Broker, topic_name: str
) -> None:
    writing = threading.Thread(target=lambda: [broker.produce(topic_name, [str(number)]) for number in range(3)])
    writing.start()
    assert sorted(one.value for one in broker.consume(topic_name, at_least=3)) == [b"0", b"1", b"2"]
    writing.join()


def test_records_that_do_not_come_are_missed_with_those_that_did(broker: Broker, topic_name: str) -> None:
    broker.produce(topic_name, ["only one"])
    with pytest.raises(BrokerFailed, match=r"1 of 2 records came within 0.3 s .*only one"):
        broker.consume(topic_name, at_least=2, timeout_s=0.3)


def test_it_may_be_called_inside_a_running_loop(broker: Broker, topic_name: str) -> None:
    async def main() -> list[StoredRecord]:
        broker.produce(topic_name, ["a"])
        return broker.consume(topic_name)

    assert [one.value for one in asyncio.run(main())] == [b"a"]


def test_records_of_an_open_transaction_are_seen_only_by_who_asks_for_them(broker: Broker, topic_name: str) -> None:
    broker.create_topic(topic_name)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic_name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic_name, b"open")
    assert producer.flush(30) == 0
    assert broker.consume(topic_name) == []
    assert [one.value for one in broker.consume(topic_name, uncommitted=True)] == [b"open"]
    producer.commit_transaction(30)
    assert [one.value for one in broker.consume(topic_name, at_least=1)] == [b"open"]


def test_what_can_not_be_done_says_why(broker: Broker, topic_name: str) -> None:
    with pytest.raises(BrokerFailed, match="it does not exist"):
        broker.consume(topic_name)
    broker.create_topic(topic_name)
    with pytest.raises(BrokerFailed, match="has no partition 7"):
        broker.consume(topic_name, partition=7)
    with pytest.raises(BrokerFailed, match="no partition 7"):
        broker.produce(topic_name, [Record("x", partition=7)])
    with pytest.raises(BrokerFailed, match="not running"):
        Broker().produce("orders", ["x"])
    with pytest.raises(BrokerFailed, match="not running"):
        Broker().consume("orders")
