"""Clients of other languages, unchanged, do round trips with our broker: Java, Go (franz-go, kafka-go) and JavaScript.

Each has one program that does the same things in its own way and prints what it got; here is what is right. A program
that can't do something says so (``left_out``), and the test is skipped with its reason.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from headpond.protocol.records.reader import read_records
from interop.programs import CLIENTS, client_program
from support.broker import BrokerProcess
from support.verbs import describe_topic, stored
from support.wire import Wire

pytestmark = pytest.mark.interop

FIRST_MS = 1_700_000_000_000
SAMPLES = [
    {"key": b"k0".hex(), "value": b"v0".hex(), "headers": [["a", "01"], ["b", ""]]},
    {"key": b"k1".hex(), "value": None, "headers": []},
    {"key": None, "value": b"v2".hex(), "headers": []},
    {"key": b"k3".hex(), "value": (b"z" * 10_000).hex(), "headers": []},
]
RIGHT_RECORDS = [{"offset": n, "timestamp": FIRST_MS + 1000 * n, **row} for n, row in enumerate(SAMPLES)]
MURMUR2_OF_KEYS = [1, 0, 2, 5, 3, 2, 2, 1, 1, 3, 2, 1, 2, 1, 4, 3, 1, 0, 5, 0]
"""Where Java's producer puts key-0 ... key-19 of six partitions."""

Checks = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", params=CLIENTS)
def said(request: pytest.FixtureRequest) -> Checks:
    """What the client's program printed, by check."""
    client: str = request.param
    program = client_program(client)  # before there is a broker: it may not be there to run
    broker: BrokerProcess = request.getfixturevalue("broker")
    lines = program(broker.bootstrap_servers, f"{client}-{uuid.uuid4().hex[:8]}")
    return {"client": {"name": client}, **{line["check"]: line for line in lines}}


def of(said: Checks, check: str) -> dict[str, Any]:
    found = said[check]
    if "left_out" in found:
        pytest.skip(f"{said['client']['name']} does not do {check}: {found['left_out']}")
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_headers_timestamps_and_tombstones_come_back_as_sent(
    said: Checks, request: pytest.FixtureRequest, codec: str
) -> None:
    found = of(said, f"codec-{codec}")
    records = found["records"] if "records" in found else read_back(request, found["topic"])
    assert records == RIGHT_RECORDS


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acks_stores_the_records(said: Checks, acks: str) -> None:
    assert of(said, f"acks-{acks}")["count"] == 10


def test_keys_go_where_java_puts_them(said: Checks) -> None:
    found = of(said, "partitions")["of_keys"]
    if said["client"]["name"] == "platformatic":  # which has a partitioner of its own, against a real Kafka too
        assert len(found) == 20 and set(found) <= set(range(6))
    else:
        assert found == MURMUR2_OF_KEYS


def test_reading_starts_at_an_offset_or_a_time(said: Checks) -> None:
    found = of(said, "seek")
    assert found.get("first", 2) == 2
    assert (found["by_timestamp"], found["beyond"], found["start"], found["end"]) == (2, None, 0, 4)


def test_an_idempotent_producer_keeps_its_order(said: Checks, request: pytest.FixtureRequest) -> None:
    found = of(said, "ordered")
    if "topic" in found:
        values = [int(bytes.fromhex(record["value"])) for record in read_back(request, found["topic"])]
        assert values == list(range(2000))
    else:
        assert (found["count"], found["ordered"]) == (2000, True)


def test_large_records_pass_and_too_large_ones_are_refused(said: Checks, request: pytest.FixtureRequest) -> None:
    found = of(said, "large")
    assert (found["bytes"], found["refused"]) == (5_000_000, "RecordTooLarge")
    if "topic" in found:
        assert [len(record["value"]) for record in read_back(request, found["topic"])] == [10_000_000]
    else:
        assert found["same"]


def test_a_waiting_consumer_gets_what_is_produced_meanwhile(said: Checks) -> None:
    assert of(said, "waiting")["got"] == "late"


def test_topics_are_made_described_changed_and_deleted(said: Checks) -> None:
    found = of(said, "admin")
    assert found == {
        "check": "admin",
        "before": "12345000",
        "after": "54321000",
        "partitions": 5,
        "listed": True,
        "brokers": 1,
        "again": "TopicExists",
        "gone": True,
    }


def read_back(request: pytest.FixtureRequest, topic: str) -> list[dict[str, Any]]:
    """For a client that can't read without a group."""
    broker: BrokerProcess = request.getfixturevalue("broker")
    with Wire(broker.bootstrap_servers) as wire:
        batches = stored(wire, describe_topic(wire, topic))
    return [
        {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": in_hex(record.key),
            "value": in_hex(record.value),
            "headers": [[name, in_hex(value)] for name, value in record.headers],
        }
        for batch in batches
        for record in read_records(batch.data)
    ]


def in_hex(data: bytes | None) -> str | None:
    return None if data is None else bytes(data).hex()
