"""Fetch without sessions: limits, waiting, errors, epochs."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from support.batches import build
from support.verbs import (
    Topic,
    append,
    batches,
    create_topic,
    end_offset,
    fetch,
    fetch_partition,
    fetch_request,
)
from support.wire import Wire

OUT_OF_RANGE, UNKNOWN_TOPIC, UNKNOWN_EPOCH, UNKNOWN_ID = 1, 3, 75, 100
VERSIONS = range(4, 19)
LONGER_THAN_THE_TEST_MS = 300_000


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_returns_whole_batches_from_the_one_with_the_offset(
    wire: Wire, topic: Topic, version: int
) -> None:
    for _ in range(4):
        append(wire, topic, build([b"a", b"b", b"c"]))
    answer = fetch(wire, topic, 4, version=version)
    assert (answer.partition_index, answer.error_code) == (0, 0)
    assert (answer.high_watermark, answer.last_stable_offset) == (12, 12)
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert [b.base_offset for b in batches(answer)] == [3, 6, 9], "the batch that holds the offset comes whole"
    assert batches(fetch(wire, topic, 12, version=version)) == []


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_without_transactions_both_isolation_levels_see_the_same(
    wire: Wire, topic: Topic, version: int, isolation_level: int
) -> None:
    append(wire, topic, build([b"a"]))
    answer = fetch(wire, topic, 0, version=version, isolation_level=isolation_level)
    assert (answer.last_stable_offset, len(batches(answer))) == (1, 1)
    assert not answer.aborted_transactions


@pytest.mark.parametrize("version", [4, 11, 12, 13, 18])
def test_an_offset_outside_the_log_is_out_of_range_at_once(wire: Wire, topic: Topic, version: int) -> None:
    append(wire, topic, build([b"a"]))
    for offset in (-1, 2, 9_999):
        answer = fetch(wire, topic, offset, version=version, max_wait_ms=LONGER_THAN_THE_TEST_MS)
        assert (answer.error_code, answer.high_watermark) == (OUT_OF_RANGE, -1)
        assert not answer.records


@pytest.mark.parametrize(("version", "code"), [(4, UNKNOWN_TOPIC), (12, UNKNOWN_TOPIC), (13, UNKNOWN_ID)])
def test_an_unknown_topic_or_partition_is_answered_at_once(wire: Wire, topic: Topic, version: int, code: int) -> None:
    stranger = Topic("no-" + topic.name, bytes(range(16)))
    patient = {"version": version, "max_wait_ms": LONGER_THAN_THE_TEST_MS}
    assert fetch(wire, stranger, **patient).error_code == code
    assert fetch(wire, topic, partition=9, **patient).error_code == UNKNOWN_TOPIC


@pytest.mark.parametrize("version", [9, 12, 17])
def test_an_epoch_of_the_future_is_unknown(wire: Wire, topic: Topic, version: int) -> None:
    append(wire, topic, build([b"a"]))
    for epoch, code in ((-1, 0), (99, UNKNOWN_EPOCH)):
        fields = {"current_leader_epoch": epoch}
        assert fetch(wire, topic, version=version, partition_fields=fields).error_code == code


def test_the_first_batch_comes_whole_even_when_it_is_larger_than_every_limit(wire: Wire, topic: Topic) -> None:
    large = build([b"x" * 50_000])
    append(wire, topic, large)
    append(wire, topic, large)
    answer = fetch(wire, topic, bytes_max=100, max_bytes=100)
    assert [b.base_offset for b in batches(answer)] == [0]
    assert len(answer.records) == len(large)


def test_a_partition_s_limit_cuts_between_batches(wire: Wire, topic: Topic) -> None:
    batch = build([b"x" * 1_000])
    for _ in range(10):
        append(wire, topic, batch)
    for limit, count in ((1, 1), (len(batch), 1), (3 * len(batch), 3), (3 * len(batch) + 5, 3), (1 << 20, 10)):
        answer = fetch(wire, topic, bytes_max=limit)
        assert len(batches(answer)) == count, f"limit of {limit} bytes"


def test_the_request_s_limit_holds_over_all_partitions(wire: Wire, topic_name: str) -> None:
    topic = create_topic(wire, topic_name, partitions=4)
    batch = build([b"x" * 1_000])
    for partition in range(4):
        for _ in range(3):
            append(wire, topic, batch, partition=partition)
    wanted = [fetch_partition(partition) for partition in range(4)]
    response = wire.call(fetch_request({topic: wanted}, version=17, max_bytes=4 * len(batch)), 17)
    parts = response.responses[0].partitions
    assert sum(len(p.records or b"") for p in parts) <= 4 * len(batch)
    assert [p.error_code for p in parts] == [0] * 4
    response = wire.call(fetch_request({topic: wanted}, version=17, max_bytes=1), 17)
    assert sum(len(batches(p)) for p in response.responses[0].partitions) == 1, "one batch, so that reading goes on"


def test_nothing_to_read_is_answered_after_the_wait(wire: Wire, topic: Topic) -> None:
    answer = fetch(wire, topic, max_wait_ms=50)
    assert (answer.error_code, answer.high_watermark, batches(answer)) == (0, 0, [])


def test_a_fetch_waits_until_enough_bytes_are_there(connect: Callable[..., Wire], wire: Wire, topic: Topic) -> None:
    batch = build([b"x" * 1_000])
    request = fetch_request(
        {topic: [fetch_partition()]}, version=17, max_wait_ms=LONGER_THAN_THE_TEST_MS, min_bytes=3 * len(batch)
    )
    wire.send(request, 17)
    other = connect()
    append(other, topic, batch)
    append(other, topic, batch)
    wire.assert_silent()
    append(other, topic, batch)
    _, response = wire.receive()
    assert len(batches(response.responses[0].partitions[0])) == 3


def test_any_partition_of_the_fetch_can_wake_it(connect: Callable[..., Wire], wire: Wire, topic_name: str) -> None:
    topic = create_topic(wire, topic_name, partitions=20)
    other = connect()
    for partition in (0, 13, 19):
        wanted = [fetch_partition(n, end_offset(other, topic, partition=n)) for n in range(20)]
        wire.send(fetch_request({topic: wanted}, version=12, max_wait_ms=LONGER_THAN_THE_TEST_MS), 12)
        append(other, topic, build([b"wake"]), partition=partition)
        _, response = wire.receive()
        found = [p.partition_index for p in response.responses[0].partitions if p.records]
        assert found == [partition]


def test_many_waiting_readers_are_all_woken(connect: Callable[..., Wire], wire: Wire, topic: Topic) -> None:
    readers = [connect() for _ in range(50)]
    for reader in readers:
        reader.send(fetch_request({topic: [fetch_partition()]}, version=17, max_wait_ms=LONGER_THAN_THE_TEST_MS), 17)
    append(wire, topic, build([b"wake"]))
    for reader in readers:
        assert len(batches(reader.receive()[1].responses[0].partitions[0])) == 1


def test_reading_and_writing_at_once_sees_every_batch_once_and_in_order(
    connect: Callable[..., Wire], wire: Wire, topic: Topic
) -> None:
    writer = connect()

    def write() -> None:
        for n in range(200):
            append(writer, topic, build([b"%d" % n]), acks=1)

    thread = threading.Thread(target=write)
    thread.start()
    seen: list[int] = []
    while len(seen) < 200:
        got = batches(fetch(wire, topic, len(seen), max_wait_ms=1_000))
        assert all(b.crc_is_right for b in got)
        seen += [b.base_offset for b in got]
    thread.join()
    assert seen == list(range(200))
