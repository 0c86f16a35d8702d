"""Finding the place to read from, waiting for what is not there yet, and what happens at the edges of a log."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.batches import Rec, build, now_ms
from support.clients.base import LATEST, Client
from support.clients.choose import make_admin
from support.clients.options import options_for
from support.verbs import Topic, append, create_topic
from support.waiting import DEADLINE_S
from support.wire import Wire

WAIT_LONGER_THAN_ANY_DEADLINE_MS = int(DEADLINE_S * 2_000)


def test_reading_starts_at_the_offset_that_was_asked_for(client: Client, wire: Wire, topic: Topic) -> None:
    for start in range(0, 30, 10):
        append(wire, topic, build([str(n).encode() for n in range(start, start + 10)]))
    for offset in (0, 9, 10, 17, 29):
        got = client.consume(topic.name, 1, start=offset)
        assert (got[0].offset, got[0].value) == (offset, str(offset).encode())


def test_a_timestamp_finds_the_first_record_that_is_not_older(client: Client, wire: Wire, topic: Topic) -> None:
    base = now_ms() - 1_000_000
    for step in (0, 100, 50, 300):  # the third batch is older than the second
        append(wire, topic, build([Rec(timestamp_delta_ms=delta) for delta in (0, 10, 20)], timestamp_ms=base + step))
    answers = {at: client.offset_for_time(topic.name, base + at) for at in (-5, 0, 1, 11, 21, 100, 121, 320, 321)}
    assert answers == {-5: 0, 0: 0, 1: 1, 11: 2, 21: 3, 100: 3, 121: 9, 320: 11, 321: None}


def test_bounds_are_the_log_start_and_the_end(client: Client, wire: Wire, topic: Topic, bootstrap: str) -> None:
    assert client.bounds(topic.name) == (0, 0)
    append(wire, topic, build([b"x"] * 10))
    assert client.bounds(topic.name) == (0, 10)
    make_admin("confluent", bootstrap).delete_records(topic.name, 0, 4)
    assert client.bounds(topic.name) == (4, 10)


def test_a_waiting_reader_is_woken_by_the_next_record(client: Client, wire: Wire, topic: Topic) -> None:
    # The fetch may wait longer than any deadline of the test: only being woken can end it in time.
    patient = options_for(
        client.name,
        fetch_wait_ms=WAIT_LONGER_THAN_ANY_DEADLINE_MS,
        request_timeout_ms=2 * WAIT_LONGER_THAN_ANY_DEADLINE_MS,
    )
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(client.consume, topic.name, 1, start=0, options=patient)
        threading.Event().wait(0.5)  # lets it park; a test that is too early passes all the same
        append(wire, topic, build([b"wake up"]))
        assert [r.value for r in reading.result(DEADLINE_S)] == [b"wake up"]


def test_reading_from_the_end_sees_only_what_comes_after(library: Client, wire: Wire, topic: Topic) -> None:
    append(wire, topic, build([b"old"] * 5))
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(library.consume, topic.name, 1, start=LATEST)
        while not reading.done():
            append(wire, topic, build([b"new"]))
            threading.Event().wait(0.05)
        (record,) = reading.result()
    assert record.value == b"new" and record.offset >= 5


def test_reading_committed_records_only_shows_all_that_is_plain(client: Client, wire: Wire, topic: Topic) -> None:
    append(wire, topic, build([b"a", b"b"]))
    for isolation in ("read_committed", "read_uncommitted"):
        got = client.consume(topic.name, 2, options=options_for(client.name, isolation=isolation))
        assert [r.value for r in got] == [b"a", b"b"]


def test_an_offset_that_was_deleted_resets_to_the_earliest(
    library: Client, wire: Wire, topic: Topic, bootstrap: str
) -> None:
    append(wire, topic, build([str(n).encode() for n in range(10)]))
    make_admin("confluent", bootstrap).delete_records(topic.name, 0, 6)
    got = library.consume(topic.name, 4, start=2, options=options_for(library.name, on_out_of_range="earliest"))
    assert [r.value for r in got] == [b"6", b"7", b"8", b"9"]


@pytest.mark.parametrize("partition_bytes_max", [1_000, 1 << 20])
def test_a_long_log_is_read_in_pieces_or_at_once(
    client: Client, wire: Wire, topic_name: str, partition_bytes_max: int
) -> None:
    topic = create_topic(wire, topic_name)
    for first in range(0, 400, 20):
        append(wire, topic, build([f"{n:04}".encode() * 500 for n in range(first, first + 20)]))
    limits = options_for(client.name, partition_bytes_max=partition_bytes_max)
    got = client.consume(topic.name, 400, options=limits)
    assert [(r.offset, r.value[:4]) for r in got] == [(n, f"{n:04}".encode()) for n in range(400)]  # type: ignore[index]


def test_a_reader_of_many_partitions_gets_the_records_of_all(library: Client, wire: Wire, topic_name: str) -> None:
    # Fetch sessions: most partitions say nothing most of the time, and none may starve.
    topic = create_topic(wire, topic_name, partitions=50)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(library.consume, topic.name, 250, partitions=range(50), start=0)
        for turn in range(5):
            for partition in range(50):
                append(wire, topic, build([str(turn).encode()]), partition=partition)
        got = reading.result(DEADLINE_S)
    for partition in range(50):
        assert [r.value for r in got if r.partition == partition] == [b"0", b"1", b"2", b"3", b"4"]
