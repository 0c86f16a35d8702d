"""The Spark sink with a real Kafka: exactly once there, too, at every step of the protocol and with Spark killed."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from interop.oracle import Oracle
from interop.programs import needs_kafka

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from headpond.client import Client
from headpond.client.admin import Admin
from headpond.spark.sink.errors import SinkFailed
from spark.audit import values
from spark.kills.attempts import ended_twice
from spark.kills.copying import CLUSTER, LOCAL, ROWS, STAGE_AGAIN, Copy, feed
from spark.kills.orders import left
from spark.sink_runs import STEPS, Killed, Query, asleep_after, killed_after, texts
from support.internal_client import run_with_client

pytestmark = [pytest.mark.interop, needs_kafka]

TOPIC = "orders"
ORDERS = [
    [("task-staged", "python")],
    [("commit-begin", "python")],
    [("commit-first-file", "jvm")],
    [("commit-mark", "python")],
    [("commit-end", "python")],
]
"""For one micro-batch after the other: a step, and who is killed there."""
ORDERS_OF_CLUSTER = [
    STAGE_AGAIN,
    [("task-middle", "jvm")],
    [("task-staged", "jvm")],
    [("commit-first-file", "executor")],
    [("commit-mark", "jvm")],
]


def test_a_real_kafka_gets_each_micro_batch_once_whatever_becomes_of_its_driver(
    make_kafka: Callable[..., Oracle], tmp_path: Path
) -> None:
    kafka = make_kafka(tmp_path / "kafka").start()

    async def create(client: Client) -> None:
        await Admin(client).create_topic(TOPIC, 3, 1)

    run_with_client(kafka.bootstrap_servers, create)
    query = Query(kafka.bootstrap_servers, TOPIC, str(uuid.uuid4()), tmp_path / "staging")
    batch_id = 0
    for step in STEPS:
        with pytest.raises(Killed):
            query.commit(query.stage(batch_id), killed_after(step))
        query.run(batch_id)
        batch_id += 1
    for step in STEPS:
        sleeping = query.stage(batch_id)

        def meanwhile(first: int = batch_id) -> None:
            query.run(first)
            query.run(first + 1)

        try:
            query.commit(sleeping, asleep_after(step, meanwhile))
        except SinkFailed:
            assert step not in ("end", "clean")
        batch_id += 2
    with pytest.raises(SinkFailed, match="its checkpoint was set back"):
        query.run(3)
    with pytest.raises(SinkFailed, match="was written before with 6 rows and has 7 now"):
        query.run(batch_id - 1, rows=7)
    assert values(kafka.bootstrap_servers, TOPIC) == texts(dict.fromkeys(range(batch_id), 6))


@pytest.mark.parametrize(
    ("master", "orders"), [(LOCAL, ORDERS), (CLUSTER, ORDERS_OF_CLUSTER)], ids=["local", "cluster"]
)
def test_a_real_kafka_has_each_record_once_when_spark_is_killed(
    make_kafka: Callable[..., Oracle], master: str, orders: list[list[tuple[str, str]]], tmp_path: Path
) -> None:
    kafka = make_kafka(tmp_path / "kafka").start()
    count = feed(kafka.bootstrap_servers, TOPIC, ROWS * (len(orders) + 2))
    folder = tmp_path / "job"
    folder.mkdir()
    copy = Copy(kafka.bootstrap_servers, TOPIC, master, folder, count=count)
    copy.place(orders)
    copy.run_to_end()
    assert left(copy.orders) == []
    assert values(kafka.bootstrap_servers, copy.target) == sorted(map(str, range(count)))
    if master == CLUSTER:
        assert 1 in ended_twice(copy.orders)
