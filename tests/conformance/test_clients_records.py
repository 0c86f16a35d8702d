"""What a client sends is what a client gets back: keys, values, headers, timestamps, codecs, acks."""

from __future__ import annotations

import pytest

from support.batches import CODECS, now_ms
from support.clients.base import Client, Sent
from support.clients.choose import CLIENTS, make_client
from support.clients.options import missing_codec_package
from support.verbs import Topic, create_topic, end_offset, stored
from support.waiting import eventually
from support.wire import Wire

COMPRESSIBLE = b"the same words again and again " * 40


def test_a_record_comes_back_with_its_key_value_headers_and_timestamp(library: Client, topic: Topic) -> None:
    at = now_ms() - 123_456
    sent = [
        Sent(b"value", b"key", [("name", b"one"), ("name", b"two"), ("empty", b"")], at),
        Sent(bytes(range(256)), b"\x00\xff", [("ünïcode", bytes(range(256)))], at + 5),
        Sent(b"", b"", [], at + 1),
    ]
    assert library.produce(topic.name, sent) == [0, 1, 2]
    got = library.consume(topic.name, 3)
    assert [(r.offset, r.key, r.value, r.headers, r.timestamp_ms) for r in got] == [
        (offset, s.key, s.value, list(s.headers), s.timestamp_ms) for offset, s in enumerate(sent)
    ]


def test_null_keys_null_values_and_header_without_value_stay_null(client: Client, topic: Topic) -> None:
    is_librdkafka = client.name in ("confluent", "kcat")  # the others refuse to send these two themselves
    headers = [("nothing", None)] if is_librdkafka else []
    sent = [Sent(None, b"tombstone", headers), Sent(b"no key", None, headers)]
    sent += [Sent(None, None, headers)] if is_librdkafka else []
    client.produce(topic.name, sent)
    got = client.consume(topic.name, len(sent))
    assert [(r.key, r.value, r.headers) for r in got] == [(s.key, s.value, headers) for s in sent]


@pytest.mark.parametrize("codec", CODECS)
def test_each_codec_is_really_used_and_comes_back_whole(client: Client, wire: Wire, topic: Topic, codec: str) -> None:
    if package := missing_codec_package(client.name, codec):
        pytest.skip(f"{client.name} needs {package} for {codec}")
    sent = [Sent(COMPRESSIBLE + str(i).encode(), str(i).encode()) for i in range(50)]
    assert client.produce(topic.name, sent, codec=codec) == list(range(50))
    assert [r.value for r in client.consume(topic.name, 50)] == [s.value for s in sent]
    batches = stored(wire, topic)
    assert {batch.codec for batch in batches} == {CODECS[codec]}, "some clients silently stop compressing"
    assert sum(batch.count for batch in batches) == 50
    assert all(batch.crc_is_right for batch in batches)


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledged_record_has_its_offset_and_is_there(client: Client, topic: Topic, acks: int) -> None:
    assert client.produce(topic.name, [Sent(b"a"), Sent(b"b")], acks=acks) == [0, 1]
    assert client.produce(topic.name, [Sent(b"c")], acks=acks) == [2]
    assert [r.value for r in client.consume(topic.name, 3)] == [b"a", b"b", b"c"]


def test_records_sent_without_acknowledgement_arrive(client: Client, wire: Wire, topic: Topic) -> None:
    client.produce(topic.name, [Sent(b"a"), Sent(b"b")], acks=0)
    eventually(lambda: end_offset(wire, topic) == 2)
    assert [r.value for r in client.consume(topic.name, 2)] == [b"a", b"b"]


def test_every_partition_keeps_its_own_order(client: Client, wire: Wire, topic_name: str) -> None:
    partitions = range(6 if client.name == "kcat" else 24)
    create_topic(wire, topic_name, partitions=len(partitions))
    for partition in partitions:
        values = [f"{partition}-{n}".encode() for n in range(10)]
        assert client.produce(topic_name, [Sent(v) for v in values], partition=partition) == list(range(10))
    got = client.consume(topic_name, 10 * len(partitions), partitions=partitions)
    for partition in partitions:
        mine = [(r.offset, r.value) for r in got if r.partition == partition]
        assert mine == [(n, f"{partition}-{n}".encode()) for n in range(10)]


def test_thousands_of_records_come_back_in_order_without_gap(client: Client, topic: Topic) -> None:
    sent = [Sent(f"{n:08}".encode() * 20, str(n % 7).encode()) for n in range(5_000)]
    assert client.produce(topic.name, sent) == list(range(5_000))
    got = client.consume(topic.name, 5_000)
    assert [(r.offset, r.key, r.value) for r in got] == [(n, s.key, s.value) for n, s in enumerate(sent)]


def test_append_time_replaces_the_client_s_timestamp(library: Client, wire: Wire, topic_name: str) -> None:
    create_topic(wire, topic_name, configs={"message.timestamp.type": "LogAppendTime"})
    before = now_ms()
    library.produce(topic_name, [Sent(b"a", timestamp_ms=1), Sent(b"b", timestamp_ms=2)])
    got = library.consume(topic_name, 2)
    # The broker's clock is this machine's clock.
    assert all(before <= record.timestamp_ms <= now_ms() for record in got)


@pytest.mark.parametrize("reader", CLIENTS)
def test_what_one_client_writes_the_others_read(client: Client, topic: Topic, reader: str, bootstrap: str) -> None:
    sent = [Sent(f"v{n}".encode(), f"k{n}".encode(), [("h", b"x")]) for n in range(20)]
    client.produce(topic.name, sent, codec="gzip")
    got = make_client(reader, bootstrap).consume(topic.name, 20)
    assert [(r.key, r.value, r.headers) for r in got] == [(s.key, s.value, [("h", b"x")]) for s in sent]
