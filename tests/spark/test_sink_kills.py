"""Exactly once, proved: kill -9 of drivers, Python workers and executors at every step of the sink's protocol.

A job copies a topic in micro-batches, and dies where the orders say; it is started again until everything is copied. A
consumer that is not ours then finds each record once. The ordinary run has some of the kills; ``make spark-chaos`` has
each victim at each step.
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

from penstock.testing import Broker
from spark.audit import values
from spark.kills.copying import CLUSTER, LOCAL, ROWS, Copy, feed
from spark.kills.killing_sink import COMMIT_STEPS, TASK_STEPS
from spark.kills.orders import left, place

IS_LONG = os.environ.get("PENSTOCK_SPARK_CHAOS") == "1"

Kill = tuple[str, str]

SOME: dict[str, list[Kill]] = {
    LOCAL: [
        ("task-start", "python"),
        ("task-staged", "python"),
        ("commit-first-file", "python"),
        ("commit-mark", "jvm"),
        ("commit-end", "python"),
    ],
    CLUSTER: [("task-staged", "jvm"), ("task-middle", "jvm"), ("commit-produce", "python")],
}
ALL: dict[str, list[Kill]] = {
    "tasks": [(step, victim) for step in TASK_STEPS for victim in ("python", "jvm", "driver")],
    "commit's python": [(step, "python") for step in COMMIT_STEPS],
    "commit's driver": [(step, "jvm") for step in COMMIT_STEPS],
}


def runs() -> list[Any]:
    if not IS_LONG:
        return [pytest.param(master, kills, id=master) for master, kills in SOME.items()]
    return [
        pytest.param(master, kills, id=f"{master} {name}") for master in (LOCAL, CLUSTER) for name, kills in ALL.items()
    ]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.mark.slow
@pytest.mark.parametrize(("master", "kills"), runs())
def test_each_record_is_there_once_whoever_is_killed(
    broker: Broker, topic: str, master: str, kills: list[Kill], tmp_path: Path
) -> None:
    count = feed(broker.bootstrap_servers, topic, ROWS * (len(kills) + 2))
    copy = Copy(broker.bootstrap_servers, topic, master, tmp_path)
    for number, (step, victim) in enumerate(kills):
        place(copy.orders, number + 1, step, victim)  # micro-batch 0 is empty
    copy.run_to_end()
    assert left(copy.orders) == []
    assert values(broker.bootstrap_servers, copy.target) == sorted(map(str, range(count)))
    assert not list(tmp_path.rglob("*.batches"))
