"""Spark's own Kafka connector works with our broker as with a real Kafka: each test is run with both, and expects the
same of both.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from interop.connector import Connector, ConnectorFailed, Row
from interop.oracle import Oracle
from interop.programs import needs_kafka
from spark.audit import Seen, committed
from support.broker import BrokerProcess
from support.waiting import eventually

pytestmark = [pytest.mark.interop, needs_kafka]

SETTINGS = {"log.cleaner.backoff.ms": 100, "log.retention.ms": -1}  # most records here are some years old
FIRST_MS = 1_700_000_000_000
MURMUR2_OF_KEYS = [1, 0, 2, 2, 0, 2, 2, 1, 1, 0, 2, 1, 2, 1, 1, 0, 1, 0, 2, 0]
"""Where Java's producer puts key-0 ... key-19 of three partitions."""


@pytest.fixture(scope="module", params=["headpond", "kafka"])
def server(
    request: pytest.FixtureRequest, connector: Connector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "kafka":
        kafka = Oracle(folder / "kafka", SETTINGS).start()
        yield kafka.bootstrap_servers
        kafka.kill()
        return
    broker = BrokerProcess(folder, settings=SETTINGS)
    try:
        yield broker.start().bootstrap_servers
        broker.stop()
        assert "Traceback" not in broker.logs(), broker.logs()
    finally:
        broker.close()


@pytest.fixture
def topic(server: str) -> str:
    """Three partitions."""
    return created(server)


def test_a_batch_reads_every_record_with_its_headers_whatever_its_codec(
    connector: Connector, server: str, topic: str
) -> None:
    expected = []
    for number, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
        partition = number % 3
        produce(
            server,
            topic,
            [(f"{codec}-{n}", f"value of {codec} {n}") for n in range(50)],
            partition,
            codec,
            headers=[("codec", codec.encode()), ("empty", b""), ("nothing", None)],
        )
        expected += [(partition, f"{codec}-{n}", f"value of {codec} {n}") for n in range(50)]
    produce(server, topic, [("tombstone", None)], 2)
    rows = connector.read(server, subscribe=topic, includeHeaders="true")
    assert sorted((row["partition"], row["key"], row["value"]) for row in rows if row["value"]) == sorted(expected)
    assert [row["offset"] for row in rows if row["partition"] == 0] == list(range(100))
    assert rows[0]["headers"] == [["codec", "none"], ["empty", ""], ["nothing", None]]
    assert rows[0]["timestamp_ms"] == FIRST_MS and rows[0]["topic"] == topic
    assert (rows[-1]["key"], rows[-1]["value"], rows[-1]["headers"]) == ("tombstone", None, None)


def test_a_batch_reads_between_offsets_and_the_partitions_that_it_is_assigned(
    connector: Connector, server: str, topic: str
) -> None:
    for partition in range(3):
        produce(server, topic, [("k", f"{partition}-{n}") for n in range(10)], partition)
    begin = json.dumps({topic: {"0": 7, "2": -2}})
    end = json.dumps({topic: {"0": -1, "2": 2}})
    assigned = json.dumps({topic: [0, 2]})
    rows = connector.read(server, assign=assigned, startingOffsets=begin, endingOffsets=end)
    assert values_of(rows) == ["0-7", "0-8", "0-9", "2-0", "2-1"]


def test_a_batch_is_written_where_its_keys_and_partitions_say(connector: Connector, server: str, topic: str) -> None:
    headers = [["who", "spark"], ["nothing", None]]
    rows: list[Row] = [{"key": f"key-{n}", "value": f"value-{n}", "headers": headers} for n in range(20)]
    rows.append({"key": "key-0", "value": "elsewhere", "partition": 2})
    rows.append({"value": "without a key"})
    rows.append({"key": "gone"})
    connector.write(server, rows, topic=topic, includeHeaders="true")
    found = {record.value: record for record in committed(server, topic)}
    assert len(found) == 23
    assert [found[b"value-%d" % n].partition for n in range(20)] == MURMUR2_OF_KEYS
    assert found[b"value-3"].headers == [("who", b"spark"), ("nothing", None)]
    assert found[b"elsewhere"].partition == 2 and found[b"without a key"].key is None
    assert found[None].key == b"gone"


def test_a_stream_reads_each_record_once_and_goes_on_after_its_checkpoint(
    connector: Connector, server: str, topic: str, tmp_path: Path
) -> None:
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "60"}
    for partition in range(3):
        produce(server, topic, [("k", f"{partition}-{n}") for n in range(40)], partition)
    batches = connector.stream(server, tmp_path, **options)
    assert len(batches) == 2
    assert sorted(values_of(all_of(batches))) == sorted(f"{p}-{n}" for p in range(3) for n in range(40))
    produce(server, topic, [("k", f"later-{n}") for n in range(5)], 1)
    grow(server, topic, 4)
    produce(server, topic, [("k", "of a new partition")], 3)
    later = connector.stream(server, tmp_path, **options)
    assert values_of(all_of(later)) == [*(f"later-{n}" for n in range(5)), "of a new partition"]
    assert connector.stream(server, tmp_path, **options) == []


def test_a_stream_writes_what_it_reads_and_goes_on_after_its_checkpoint(
    connector: Connector, server: str, topic: str, tmp_path: Path
) -> None:
    target = created(server)
    options = {"subscribe": topic, "startingOffsets": "earliest", "includeHeaders": "true"}
    produce(server, topic, [(f"k{n}", f"first-{n}") for n in range(30)], headers=[("h", b"1")])
    connector.copy(server, tmp_path, to=target, **options)
    produce(server, topic, [(f"k{n}", f"second-{n}") for n in range(30)], headers=[("h", b"2")])
    connector.copy(server, tmp_path, to=target, **options)
    assert sorted(map(content_of, committed(server, target))) == sorted(map(content_of, committed(server, topic)))
    assert len(committed(server, target)) == 60


def test_reads_begin_and_end_at_times(connector: Connector, server: str, topic: str) -> None:
    produce(server, topic, [("k", str(n)) for n in range(10)], 0)  # a second apart
    by_timestamp = json.dumps({topic: {str(p): FIRST_MS + 3_500 for p in range(3)}})
    options = {"subscribe": topic, "startingOffsetsByTimestampStrategy": "latest"}
    assert values_of(connector.read(server, startingOffsetsByTimestamp=by_timestamp, **options)) == list("456789")
    until = str(FIRST_MS + 6_000)
    assert values_of(
        connector.read(server, startingOffsetsByTimestamp=by_timestamp, endingTimestamp=until, **options)
    ) == list("45")
    with pytest.raises(ConnectorFailed, match="No offset matched"):  # two partitions are empty, and that is an error
        connector.read(server, subscribe=topic, startingOffsetsByTimestamp=by_timestamp)


def test_more_tasks_than_partitions_read_each_record_once(connector: Connector, server: str, topic: str) -> None:
    for partition in range(3):
        produce(server, topic, [("k", f"{partition}-{n}") for n in range(100)], partition)
    assert connector.tasks_of(server, subscribe=topic, minPartitions="9") == 9
    rows = connector.read(server, subscribe=topic, minPartitions="9")
    assert sorted(values_of(rows)) == sorted(f"{p}-{n}" for p in range(3) for n in range(100))


def test_deleted_records_fail_a_stream_unless_it_was_told_to_go_on(
    connector: Connector, server: str, topic: str, tmp_path: Path
) -> None:
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    produce(server, topic, [("k", f"old-{n}") for n in range(5)], 0)
    assert len(connector.stream(server, tmp_path, **options)[0]) == 5
    produce(server, topic, [("k", f"new-{n}") for n in range(10)], 0)
    delete_records(server, topic, partition=0, up_to_end_offset=8)
    with pytest.raises(ConnectorFailed, match=r"DATA_LOSS|data may have been lost"):
        connector.stream(server, tmp_path, **options)
    batches = connector.stream(server, tmp_path, failOnDataLoss="false", **options)
    assert values_of(all_of(batches)) == [f"new-{n}" for n in range(3, 10)]
    rows = connector.read(server, subscribe=topic, startingOffsets=json.dumps({topic: {"0": -2, "1": -2, "2": -2}}))
    assert [row["offset"] for row in rows] == list(range(8, 15))


def test_a_compacted_topic_is_read_across_its_gaps(connector: Connector, server: str, tmp_path: Path) -> None:
    table = created(
        server,
        partitions=1,
        config={"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"},
    )
    for version in range(4):
        produce(server, table, [(f"key-{n}", f"{n} v{version}") for n in range(25)], 0)

    def survivors() -> list[Row] | None:
        """A segment is closed when a record comes after its time, and the cleaner takes closed ones only."""
        produce(server, table, [("tick", "tick")], 0, first_ms=0)
        found = [row for row in connector.read(server, subscribe=table) if row["key"] != "tick"]
        return found if len(found) == 25 else None

    kept = eventually(survivors, what="the cleaner", deadline_s=120)
    assert [row["value"] for row in kept] == [f"{n} v3" for n in range(25)]
    assert [row["offset"] for row in kept] == list(range(75, 100))
    in_a_gap = json.dumps({table: {"0": 10}})
    assert values_of(connector.read(server, subscribe=table, startingOffsets=in_a_gap))[:25] == values_of(kept)
    options = {"subscribe": table, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "30"}
    streamed = all_of(connector.stream(server, tmp_path, **options))
    assert values_of(streamed)[:25] == values_of(kept)


def test_transactions_are_seen_as_the_isolation_level_says(
    connector: Connector, server: str, topic: str, tmp_path: Path
) -> None:
    options = {"subscribe": topic, "startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}
    transaction(server, topic, "kept", is_kept=True)
    transaction(server, topic, "dropped", is_kept=False)
    produce(server, topic, [("k", "plain")], 0)
    transaction(server, topic, "kept, too", is_kept=True)
    transaction(server, topic, "dropped, too", is_kept=False)
    everything = ["kept", "dropped", "plain", "kept, too", "dropped, too"]
    assert values_of(connector.read(server, subscribe=topic)) == everything
    assert values_of(connector.read(server, **options)) == ["kept", "plain", "kept, too"]

    unfinished = open_transaction(server, topic, "open")
    assert values_of(connector.read(server, subscribe=topic)) == [*everything, "open"]
    assert values_of(connector.read(server, **options)) == ["kept", "plain", "kept, too"]
    streamed = all_of(connector.stream(server, tmp_path, **options))
    assert values_of(streamed) == ["kept", "plain", "kept, too"]
    unfinished.commit_transaction(30)
    assert values_of(all_of(connector.stream(server, tmp_path, **options))) == ["open"]


def test_a_pattern_finds_its_topics_and_those_that_are_created_later(
    connector: Connector, server: str, tmp_path: Path
) -> None:
    family = f"family-{uuid.uuid4().hex[:8]}"
    options = {"subscribePattern": f"{family}-.*", "startingOffsets": "earliest"}
    for name in ("a", "b"):
        produce(server, created(server, f"{family}-{name}"), [("k", name)], 0)
    produce(server, created(server, f"other-{family}"), [("k", "of another")], 0)
    assert values_of(connector.read(server, **options)) == ["a", "b"]
    assert values_of(all_of(connector.stream(server, tmp_path, **options))) == ["a", "b"]
    produce(server, created(server, f"{family}-c"), [("k", "c")], 0)
    assert values_of(all_of(connector.stream(server, tmp_path, **options))) == ["c"]


def all_of(batches: list[list[Row]]) -> list[Row]:
    return [row for batch in batches for row in batch]


def values_of(rows: list[Row]) -> list[str]:
    return [row["value"] for row in rows]


def content_of(record: Seen) -> tuple[bytes, bytes, Any]:
    assert record.key is not None and record.value is not None
    return record.key, record.value, record.headers


def created(server: str, name: str = "", *, partitions: int = 3, config: dict[str, str] | None = None) -> str:
    name = name or f"connector-{uuid.uuid4().hex[:12]}"
    administer(server, "create_topics", [NewTopic(name, partitions, 1, config=config or {})])
    return name


def grow(server: str, topic: str, partitions: int) -> None:
    administer(server, "create_partitions", [NewPartitions(topic, partitions)])


def delete_records(server: str, topic: str, *, partition: int, up_to_end_offset: int) -> None:
    administer(server, "delete_records", [TopicPartition(topic, partition, up_to_end_offset)])


def administer(server: str, action: str, wanted: list[Any]) -> None:
    admin = AdminClient({"bootstrap.servers": server})
    for future in getattr(admin, action)(wanted).values():
        future.result(30)


def produce(
    server: str,
    topic: str,
    rows: list[tuple[str, str | None]],
    partition: int = -1,
    codec: str = "none",
    headers: list[tuple[str, bytes | None]] | None = None,
    first_ms: int = FIRST_MS,
) -> None:
    """``partition`` -1: by the key. ``first_ms``: the time of the first, the others are a second apart; 0: now."""
    producer = Producer({"bootstrap.servers": server, "linger.ms": 20, "compression.type": codec})
    for number, (key, value) in enumerate(rows):
        timestamp = first_ms + 1_000 * number if first_ms else 0
        producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
    assert producer.flush(30) == 0


def transaction(server: str, topic: str, value: str, *, is_kept: bool) -> None:
    producer = open_transaction(server, topic, value)
    if is_kept:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def open_transaction(server: str, topic: str, value: str) -> Producer:
    """A transaction with one record, which is in the log."""
    producer = Producer({"bootstrap.servers": server, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, value, partition=0)
    producer.flush(30)
    return producer
