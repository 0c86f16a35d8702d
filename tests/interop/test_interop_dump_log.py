"""Apache Kafka's own dump tool reads the folders that we write, without complaint: records, indexes, snapshots."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interop.programs import kafka_tool, needs_kafka
from support.batches import CODECS, Rec, build
from support.broker import BrokerProcess
from support.verbs import append, create_topic, new_producer
from support.wire import Wire

pytestmark = [pytest.mark.interop, needs_kafka]


def dump(*arguments: str) -> str:
    return kafka_tool("org.apache.kafka.tools.DumpLogSegments", *arguments)


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
def test_kafka_dumps_what_we_wrote(make_broker: Callable[..., BrokerProcess], kill: bool) -> None:
    broker = make_broker(settings={"log.index.interval.bytes": 500}).start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders", configs={"segment.bytes": str(1 << 20)})
        producer_id, epoch = new_producer(wire)
        for n in range(200):
            rows = [Rec(b"value-%d" % n * 400, b"key", [("h", b"x")], timestamp_delta_ms=k) for k in range(3)]
            codec = list(CODECS)[n % 5]
            append(
                wire,
                topic,
                build(rows, codec=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=3 * n),
            )
    broker.restart(kill=kill)
    broker.stop()
    folder = broker.log_folder("orders")
    logs, indexes = sorted(folder.glob("*.log")), [*folder.glob("*.index"), *folder.glob("*.timeindex")]
    text = dump("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, logs)))
    assert text.count("isvalid: true") == 200 and "isvalid: false" not in text
    assert text.count("| offset:") == 600
    assert indexes
    said = dump("--index-sanity-check", "--files", ",".join(map(str, indexes)))
    assert "Mismatches" not in said and "Found" not in said and "out of order" not in said, said
    said = dump("--files", ",".join(map(str, indexes)))
    assert "Mismatches" not in said and "Found" not in said and "out of order" not in said, said
    snapshots = ",".join(map(str, folder.glob("*.snapshot")))
    assert f"producerId: {producer_id}" in dump("--files", snapshots)
