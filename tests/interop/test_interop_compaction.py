"""The same batches, compacted by Apache Kafka and by us: the same records survive at the same offsets, and Kafka's dump
tool finds no fault in what we wrote.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from headpond.protocol.records.reader import read_records
from interop.oracle import Oracle
from interop.programs import kafka_tool, needs_kafka
from support.batches import CODECS, Rec, build
from support.broker import BrokerProcess
from support.verbs import append, create_topic, new_producer, stored
from support.waiting import eventually
from support.wire import Wire

pytestmark = [pytest.mark.interop, needs_kafka]

SETTINGS = {"log.cleaner.backoff.ms": 100}
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1",
    "max.message.bytes": "100000",
}
KEYS = 60
BATCHES = 400
Survivor = tuple[int, bytes | None, bytes | None]


def the_same_batches(producer: tuple[int, int]) -> list[bytes]:
    """Every codec, tombstones, headers, an idempotent producer; keys that come back often, and some that never do."""
    chance = random.Random(1)
    batches = []
    sequence = 0
    for number in range(BATCHES):
        rows = []
        for _ in range(chance.randrange(1, 12)):
            key = b"key-%d" % (chance.randrange(KEYS) if chance.random() < 0.98 else 1_000 + number)
            value = None if chance.random() < 0.1 else chance.randbytes(chance.randrange(900))
            rows.append(Rec(value, key, [("h", b"x")] if number % 3 else [], timestamp_delta_ms=chance.randrange(9)))
        fields = {}
        if number % 2:
            fields = {"producer_id": producer[0], "producer_epoch": producer[1], "base_sequence": sequence}
            sequence += len(rows)
        batches.append(build(rows, codec=list(CODECS)[number % 5], **fields))  # type: ignore[arg-type]
    return batches


def survivors_of(bootstrap_servers: str) -> Callable[[], list[Survivor] | None]:
    """Produces to a topic of its own; then, at each call, some filler, until nothing but the latest is left."""
    with Wire(bootstrap_servers) as wire:
        topic = create_topic(wire, "table", configs=CONFIGS)
        latest: dict[bytes | None, Survivor] = {}
        for batch in the_same_batches(new_producer(wire)):
            base = append(wire, topic, batch)
            for record in read_records(batch):
                offset = base + record.offset
                latest[record.key] = (offset, record.key, record.value)
    expected = sorted(row for row in latest.values() if row[2] is not None)

    def survivors() -> list[Survivor] | None:
        with Wire(bootstrap_servers) as wire:
            for number in range(16):
                append(wire, topic, build([Rec(bytes(90_000), b"filler-%d" % (number % 2))]))
            found: list[Survivor] = []
            for batch in stored(wire, topic):
                assert batch.crc_is_right
                found += [(r.offset, r.key, r.value) for r in read_records(batch.data) if r.key and r.key[:3] == b"key"]
        return found if found == expected else None

    return survivors


def test_kafka_and_we_keep_the_same_records_and_its_dump_tool_finds_no_fault_in_ours(
    make_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    broker = make_broker(settings={**SETTINGS, "log.index.interval.bytes": 500}).start()
    kafka = Oracle(tmp_path / "kafka", SETTINGS).start()
    try:
        theirs = eventually(survivors_of(kafka.bootstrap_servers), what="Kafka's compaction", deadline_s=120)
    finally:
        kafka.kill()
    ours = eventually(
        survivors_of(broker.bootstrap_servers), what=lambda: f"our compaction\n{broker.logs()}", deadline_s=120
    )
    assert ours == theirs
    broker.stop()
    folder = broker.log_folder("table")
    logs, indexes = sorted(folder.glob("*.log")), [*folder.glob("*.index"), *folder.glob("*.timeindex")]
    text = kafka_tool("org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(map(str, logs)))
    assert "isvalid: true" in text and "isvalid: false" not in text
    assert text.count("| offset:") >= len(ours)
    for check in (["--index-sanity-check"], []):
        said = kafka_tool("org.apache.kafka.tools.DumpLogSegments", *check, "--files", ",".join(map(str, indexes)))
        assert "Mismatches" not in said and "out of order" not in said, said
    assert "table 0 " in (broker.data_dir / "cleaner-offset-checkpoint").read_text()


def test_kafka_reads_the_delete_horizon_that_we_set(make_broker: Callable[..., BrokerProcess]) -> None:

    broker = make_broker(settings=SETTINGS).start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "table", configs={**CONFIGS, "delete.retention.ms": "3600000"})
        for key, value in ((b"a", b"1"), (b"b", b"1"), (b"a", None)):
            append(wire, topic, build([Rec(value, key)]))
        for number in range(16):
            append(wire, topic, build([Rec(bytes(90_000), b"filler-%d" % (number % 2))]))

        def has_horizon() -> bool:
            return any(batch.attributes & 0x40 for batch in stored(wire, topic))

        eventually(has_horizon, what=lambda: f"a delete horizon\n{broker.logs()}")
    broker.stop()
    logs = sorted(broker.log_folder("table").glob("*.log"))
    text = kafka_tool("org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", str(logs[0]))
    assert "isvalid: false" not in text
    assert "deleteHorizonMs: OptionalLong[" in text, text
