"""The Spark source with a real Kafka: it is only protocol. Asked without a JVM; ``tests/spark`` has Spark itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from headpond.client import Client
from headpond.client.admin import Admin
from headpond.client.group_admin import Groups
from headpond.model import TopicPartition
from interop.oracle import Oracle
from interop.programs import needs_kafka
from support.internal_client import run_with_client
from support.waiting import eventually

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from headpond.spark.kafka.errors import DataLost
from spark.engine import Engine, offsets_of

pytestmark = [pytest.mark.interop, needs_kafka]

TOPIC = "orders"


def test_a_real_kafka_is_read_from_its_first_record_to_its_deleted_topic(
    make_kafka: Callable[..., Oracle], tmp_path: Path
) -> None:
    kafka = make_kafka(tmp_path / "kafka").start()
    create(kafka)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        produce(kafka, [f"{codec}-{number}" for number in range(3)], **{"compression.type": codec})
    query = Engine(options(kafka, startingOffsets="earliest", **{"kafka.group.id": "spark"}))
    found = query.to_end()
    assert len(found) == 15 and sorted(found)[:3] == ["gzip-0", "gzip-1", "gzip-2"]
    assert committed(kafka) == query.log[-1][TOPIC]

    transaction(kafka, "kept", is_kept=True)
    transaction(kafka, "dropped", is_kept=False)
    assert query.to_end() == ["kept"]
    assert sum(offsets_of(query.log[-1])[TOPIC].values()) == 15 + 2 + 2  # a marker behind each transaction

    change(kafka, "create_partitions", TOPIC, 3)
    eventually(lambda: query.to_end() == [] and len(query.log[-1][TOPIC]) == 3, what="the new partition to be seen")

    change(kafka, "delete_topics", [TOPIC])
    create(kafka)
    produce(kafka, [f"anew-{number}" for number in range(40)])
    restarted = Engine(options(kafka), query.log)
    with pytest.raises(DataLost, match="topic orders was deleted and created again"):
        restarted.batch()
    tolerant = Engine(options(kafka, failOnDataLoss="false"), query.log)
    assert len(tolerant.to_end()) == 40
    for engine in (query, restarted, tolerant):
        engine.reader.stop()


def options(kafka: Oracle, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": TOPIC, **more}


def produce(kafka: Oracle, values: list[str], **settings: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 20, **settings})
    for value in values:
        producer.produce(TOPIC, value)
    assert producer.flush(30) == 0


def transaction(kafka: Oracle, value: str, *, is_kept: bool) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": value})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(TOPIC, value, partition=0)
    producer.flush(30)
    if is_kept:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def create(kafka: Oracle) -> None:
    change(kafka, "create_topic", TOPIC, 2, 1)


def change(kafka: Oracle, action: str, *arguments: Any) -> None:
    async def ask(client: Client) -> None:
        await getattr(Admin(client), action)(*arguments)

    run_with_client(kafka.bootstrap_servers, ask)


def committed(kafka: Oracle) -> dict[str, int]:
    async def ask(client: Client) -> dict[TopicPartition, int]:
        return {tp: one.offset for tp, one in (await Groups(client).offsets("spark")).items()}

    return {str(tp.partition): offset for tp, offset in run_with_client(kafka.bootstrap_servers, ask).items()}
