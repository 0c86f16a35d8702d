"""Sequences of idempotent producers: in order once, duplicates answered with where they went, nothing else let in."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from support.batches import build
from support.verbs import Topic, create_topic, end_offset, new_producer, produce, produce_request
from support.wire import Wire

OUT_OF_ORDER, OLD_EPOCH, INVALID_RECORD = 45, 47, 87


class Producer:
    """Sends batches of two with any id, epoch and sequence."""

    def __init__(self, wire: Wire, topic: Topic) -> None:
        self.wire, self.topic = wire, topic
        self.id, self.epoch = new_producer(wire)

    def batch(self, sequence: int, *, epoch: int | None = None, records: int = 2) -> bytes:
        at = self.epoch if epoch is None else epoch
        return build([b"x"] * records, producer_id=self.id, producer_epoch=at, base_sequence=sequence)

    def send(self, sequence: int, *, partition: int = 0, **fields: Any) -> tuple[int, int]:
        answer = produce(self.wire, self.topic, self.batch(sequence, **fields), partition=partition)
        return answer.error_code, answer.base_offset


@pytest.fixture
def producer(wire: Wire, topic: Topic) -> Producer:
    return Producer(wire, topic)


@pytest.mark.parametrize("version", range(0, 6))
def test_every_version_hands_out_ids_that_differ(wire: Wire, version: int) -> None:
    ids = [new_producer(wire, version=version) for _ in range(5)]
    assert len({producer_id for producer_id, _ in ids}) == 5
    assert all(producer_id >= 0 and epoch == 0 for producer_id, epoch in ids)


def test_an_empty_transactional_id_is_an_invalid_request(wire: Wire) -> None:
    assert wire.call(InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1_000), 4).error_code == 42


def test_batches_in_order_are_appended_once(producer: Producer) -> None:
    assert [producer.send(s) for s in (0, 2, 4)] == [(0, 0), (0, 2), (0, 4)]


def test_the_last_five_batches_are_recognised_as_duplicates(producer: Producer, wire: Wire) -> None:
    for sequence in range(0, 14, 2):
        producer.send(sequence)
    assert [producer.send(s) for s in (4, 6, 8, 10, 12)] == [(0, 4), (0, 6), (0, 8), (0, 10), (0, 12)]
    assert producer.send(2) == (OUT_OF_ORDER, -1)
    assert end_offset(wire, producer.topic) == 14
    assert producer.send(14) == (0, 14)


def test_a_gap_is_out_of_order_and_can_be_filled(producer: Producer, wire: Wire) -> None:
    producer.send(0)
    assert producer.send(4) == (OUT_OF_ORDER, -1)
    assert end_offset(wire, producer.topic) == 2
    assert [producer.send(2), producer.send(4)] == [(0, 2), (0, 4)]


def test_a_duplicate_with_another_count_is_no_duplicate(producer: Producer) -> None:
    producer.send(0)
    assert producer.send(0, records=3) == (OUT_OF_ORDER, -1)


def test_a_new_epoch_starts_at_zero_and_fences_the_old_one(producer: Producer) -> None:
    producer.send(0)
    assert producer.send(2, epoch=1) == (OUT_OF_ORDER, -1)
    assert producer.send(0, epoch=1) == (0, 2)
    assert producer.send(2, epoch=0) == (OLD_EPOCH, -1)
    assert producer.send(2, epoch=1) == (0, 4)


def test_a_producer_that_the_log_does_not_know_may_start_anywhere(producer: Producer) -> None:
    assert producer.send(37) == (0, 0)
    assert producer.send(39) == (0, 2)


def test_sequences_wrap_at_the_largest_int(producer: Producer) -> None:
    top = 2**31 - 1
    assert producer.send(top - 3) == (0, 0)
    assert producer.send(top - 1) == (0, 2)
    assert producer.send(0) == (0, 4)
    assert producer.send(top - 1) == (0, 2), "a duplicate from before the wrap"
    again = Producer(producer.wire, producer.topic)
    assert [again.send(top), again.send(1)] == [(0, 6), (0, 8)], "a batch may itself straddle the wrap"


def test_an_id_without_sequence_and_an_epoch_without_number_are_refused(producer: Producer) -> None:
    assert producer.send(0) == (0, 0)
    assert producer.send(-1) == (INVALID_RECORD, -1)
    assert producer.send(2, epoch=-1) == (OLD_EPOCH, -1)


def test_sequences_are_counted_per_partition(wire: Wire, topic_name: str) -> None:
    producer = Producer(wire, create_topic(wire, topic_name, partitions=2))
    assert [producer.send(0, partition=0), producer.send(0, partition=1)] == [(0, 0), (0, 0)]
    assert [producer.send(2, partition=0), producer.send(0, partition=1)] == [(0, 2), (0, 0)]


def test_five_batches_in_flight_keep_their_order_and_repeat_theirs(producer: Producer, wire: Wire) -> None:
    frames = []
    for sequence in (0, 2, 4, 6, 8, 0, 2, 4, 6, 8):
        request = produce_request(producer.topic, producer.batch(sequence), version=9)
        frames.append(wire.frame(request, 9)[1])
    wire.send_raw(b"".join(frames))
    answers = [wire.receive()[1].responses[0].partition_responses[0] for _ in frames]
    assert [(a.error_code, a.base_offset) for a in answers] == [(0, n) for n in (0, 2, 4, 6, 8) * 2]
    assert end_offset(wire, producer.topic) == 10
