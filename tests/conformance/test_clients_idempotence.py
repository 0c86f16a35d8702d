"""Idempotent producers, each client's own way: the stored batches carry an id, an epoch and dense sequences."""

from __future__ import annotations

from support.clients.base import Client, Sent
from support.clients.options import options_for
from support.verbs import Topic, create_topic, end_offset, stored
from support.waiting import eventually
from support.wire import Wire


def test_an_idempotent_producer_numbers_its_records(client: Client, wire: Wire, topic: Topic) -> None:
    options = options_for(client.name, idempotent=True)
    sent = [Sent(str(n).encode() * 100) for n in range(300)]
    assert client.produce(topic.name, sent, options=options) == list(range(300))
    batches = stored(wire, topic)
    assert len({(b.producer_id, b.producer_epoch) for b in batches}) == 1
    assert batches[0].producer_id >= 0 and batches[0].producer_epoch == 0
    assert [b.base_sequence for b in batches] == [b.base_offset for b in batches]


def test_two_producers_never_share_an_id(client: Client, wire: Wire, topic: Topic) -> None:
    for n in range(2):
        assert client.produce(topic.name, [Sent(b"x")], options=options_for(client.name, idempotent=True)) == [n]
    first, second = stored(wire, topic)
    assert first.producer_id != second.producer_id
    assert (first.base_sequence, second.base_sequence) == (0, 0)


def test_an_idempotent_producer_counts_per_partition(library: Client, wire: Wire, topic_name: str) -> None:
    topic = create_topic(wire, topic_name, partitions=3)
    options = options_for(library.name, idempotent=True)
    for partition in range(3):
        assert library.produce(topic.name, [Sent(b"x")] * 4, partition=partition, options=options) == [0, 1, 2, 3]
        assert stored(wire, topic, partition=partition)[0].base_sequence == 0


def test_a_plain_producer_has_no_id(client: Client, wire: Wire, topic: Topic) -> None:
    client.produce(topic.name, [Sent(b"x")], acks=1, options=options_for(client.name, idempotent=False))
    eventually(lambda: end_offset(wire, topic) == 1)  # acks=1 may be answered before it is visible
    (batch,) = stored(wire, topic)
    assert (batch.producer_id, batch.producer_epoch) == (-1, -1)
    # aiokafka writes a sequence of 0 where there is none: harmless, and taken by Apache Kafka.
    assert batch.base_sequence == (0 if client.name == "aiokafka" else -1)
