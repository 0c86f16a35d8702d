"""Exactly once, proved: kill -9 of drivers, Python workers and executors at every step of the sink's protocol.

A job copies a topic in micro-batches, and dies where the orders say; it is started again until everything is copied. A
consumer that is not ours then finds each record once. The ordinary run has some of the kills; ``make spark-chaos`` has
each victim at each step of a stream, and the driver at each step of batch writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from headpond.testing import Broker
from spark.audit import values
from spark.kills.attempts import ended_twice
from spark.kills.copying import BATCH, CLUSTER, LOCAL, ROWS, STAGE_AGAIN, STREAM, UPDATE, Copy, feed
from spark.kills.killing_sink import COMMIT_STEPS, TASK_STEPS
from spark.kills.orders import left

IS_LONG = os.environ.get("HEADPOND_SPARK_CHAOS") == "1"

Kill = tuple[str, str]
Orders = list[list[Kill]]
"""For one micro-batch after the other."""

TIER: dict[tuple[str, str], list[Kill]] = {
    (LOCAL, STREAM): [("commit-first-file", "python"), ("commit-mark", "jvm")],
    (LOCAL, BATCH): [("commit-end", "driver")],
}
"""One for each victim that a session in one process has. An executor needs a cluster: ``SOME``."""
SOME: dict[tuple[str, str], list[Kill]] = {
    (LOCAL, STREAM): [
        ("task-start", "python"),
        ("task-staged", "python"),
        ("commit-first-file", "python"),
        ("commit-mark", "jvm"),
        ("commit-end", "python"),
    ],
    (CLUSTER, STREAM): [("task-middle", "jvm"), ("commit-first-file", "executor"), ("commit-produce", "python")],
    (LOCAL, UPDATE): [("commit-mark", "driver")],
}
ALL: dict[str, list[Kill]] = {
    "tasks": [(step, victim) for step in TASK_STEPS for victim in ("python", "jvm", "driver")],
    "commit's python": [(step, "python") for step in COMMIT_STEPS],
    "commit's driver": [(step, "jvm") for step in COMMIT_STEPS],
}
EXECUTORS: list[Kill] = [(step, "executor") for step in COMMIT_STEPS]
DRIVERS: list[Kill] = [(step, "driver") for step in (*TASK_STEPS, *COMMIT_STEPS)]


def runs() -> list[Any]:
    if not IS_LONG:
        short = [run(master, kind, kills, "in short", marks=pytest.mark.tier) for (master, kind), kills in TIER.items()]
        return [*short, *(run(master, kind, kills) for (master, kind), kills in SOME.items())]
    return [
        *(run(master, STREAM, kills, name) for master in (LOCAL, CLUSTER) for name, kills in ALL.items()),
        run(CLUSTER, STREAM, EXECUTORS, "executors during the commit"),
        *(run(LOCAL, kind, DRIVERS, "driver") for kind in (UPDATE, BATCH)),
    ]


def run(master: str, kind: str, kills: list[Kill], name: str = "", marks: Any = ()) -> Any:
    orders = [[kill] for kill in kills]
    if (master, kind) == (CLUSTER, STREAM):
        orders.insert(0, STAGE_AGAIN)  # while both executors are there
    return pytest.param(master, kind, orders, id=f"{master} {kind} {name}".strip(), marks=marks)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.mark.parametrize(("master", "kind", "orders"), runs())
def test_each_record_is_there_once_whoever_is_killed(
    broker: Broker, topic: str, master: str, kind: str, orders: Orders, tmp_path: Path
) -> None:
    count = feed(broker.bootstrap_servers, topic, ROWS * (len(orders) + 2))
    copy = Copy(broker.bootstrap_servers, topic, master, tmp_path, kind=kind, count=count)
    copy.place(orders)
    copy.run_to_end()
    assert left(copy.orders) == []
    assert values(broker.bootstrap_servers, copy.target) == sorted(map(str, range(count)))
    assert not list(tmp_path.rglob("*.batches"))
    if STAGE_AGAIN in orders:
        assert 1 in ended_twice(copy.orders), "no stage was done again: the run has proved less than it says"
