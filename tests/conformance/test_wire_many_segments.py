"""Logs of several segments, and several writers at once: order and offsets stay dense whatever happens underneath."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.batches import build
from support.verbs import (
    Topic,
    append,
    create_topic,
    end_offset,
    fetch,
    list_offset,
    new_producer,
    produce_request,
    stored,
)
from support.waiting import eventually
from support.wire import Wire

SEGMENT_BYTES = 1 << 20
VALUE = os.urandom(100_000)


@pytest.fixture
def topic(wire: Wire, topic_name: str) -> Topic:
    """Ten batches of 100 KB fill a segment."""
    return create_topic(wire, topic_name, configs={"segment.bytes": str(SEGMENT_BYTES)})


def test_pipelined_batches_keep_their_order_over_every_roll(wire: Wire, topic: Topic) -> None:
    producer_id, epoch = new_producer(wire)
    for sequence in range(60):
        batch = build([VALUE], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        wire.send(produce_request(topic, batch, version=9), 9)
    for offset in range(60):
        answer = wire.receive()[1].responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (0, offset)
    assert [b.base_sequence for b in stored(wire, topic)] == list(range(60))


def test_every_offset_and_time_is_found_in_its_segment(wire: Wire, topic: Topic) -> None:
    base = 1_700_000_000_000
    for n in range(40):
        append(wire, topic, build([VALUE, b"x"], timestamp_ms=base + n * 1_000))
    for offset in range(80):
        answer = fetch(wire, topic, offset, bytes_max=1)
        first = next(iter(stored(wire, topic, offset=offset)), None) if offset % 20 == 0 else None
        assert answer.error_code == 0
        assert int.from_bytes(answer.records[:8], "big") == offset - offset % 2
        assert first is None or first.base_offset == offset - offset % 2
    for n in range(40):
        assert list_offset(wire, topic, base + n * 1_000).offset == 2 * n
        assert list_offset(wire, topic, base + n * 1_000 - 1).offset == 2 * n


@pytest.mark.parametrize("acks", [1, -1])
def test_many_writers_of_one_partition_get_offsets_of_their_own(
    connect: Callable[..., Wire], wire: Wire, topic: Topic, acks: int
) -> None:
    def write(writer: int) -> list[int]:
        own = connect()
        return [append(own, topic, build([b"%d-%d" % (writer, n)]), acks=acks) for n in range(50)]

    with ThreadPoolExecutor(8) as pool:
        offsets = list(pool.map(write, range(8)))
    assert sorted(offset for each in offsets for offset in each) == list(range(400))
    assert all(each == sorted(each) for each in offsets), "each writer's records in its own order"
    eventually(lambda: end_offset(wire, topic) == 400)
    values = {b.base_offset: b.data for b in stored(wire, topic)}
    for writer, each in enumerate(offsets):
        assert all(b"%d-%d" % (writer, n) in values[offset] for n, offset in enumerate(each))
