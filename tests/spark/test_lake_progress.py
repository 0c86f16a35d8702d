"""The bars of ``headpond pipeline snapshot`` and ``audit``, which wait for Spark in one call: they move."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from headpond.cli.common import progress
from headpond.cli.common.progress import Progress
from headpond.cli.pipeline import tasks_bar as pipeline_tasks_bar
from headpond.spark.lake import audit, snapshot
from headpond.spark.lake.task_counts import TaskCounter, TaskCounts
from headpond.testing import Broker
from spark.lake_support import Pipelines, record
from support.waiting import eventually

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Drawn = list[tuple[str, int, int | None]]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """What bars on a terminal would show, from the first moment on: (what, done, total)."""
    found: Drawn = []

    def stand_at(self: Progress, done: int, total: int | None) -> None:
        found.append((self._what, done, total))

    monkeypatch.setattr(Progress, "stand_at", stand_at)
    terminal = SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: True))  # pytest has another stderr in each phase
    monkeypatch.setattr(progress, "sys", terminal)
    return found


def waiting_for(drawn: Drawn, real: Callable[..., Any]) -> Callable[..., Any]:
    """The same work, which is not over before the bar has shown that tasks of it are done."""

    def work(*given: Any) -> Any:
        result = real(*given)
        eventually(lambda: any(done > 1 for _, done, _ in drawn), what=lambda: f"a bar that moves, not {drawn}")
        return result

    return work


def test_the_bar_of_a_snapshot_moves(
    pipelines: Pipelines,
    spark_broker: Broker,
    topic: str,
    tmp_path: Path,
    drawn: Drawn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark_broker.create_topic(topic, partitions=3)
    spark_broker.produce(topic, [record(number, number % 3) for number in range(30)])
    monkeypatch.setattr(snapshot, "take_snapshot", waiting_for(drawn, snapshot.take_snapshot))
    assert pipelines.run("snapshot", topic, "--to", str(tmp_path / "table"))[0] == 0
    assert {what for what, _, _ in drawn} == {"reading 30 records"}
    assert all(done <= total for _, done, total in drawn if total is not None)


def test_the_bar_of_an_audit_moves_also_of_one_topic(
    pipelines: Pipelines, spark_broker: Broker, topic: str, drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_broker.create_topic(topic, partitions=3)
    spark_broker.produce(topic, [record(number, number % 3) for number in range(30)])
    monkeypatch.setattr(audit.Audit, "run", waiting_for(drawn, audit.Audit.run))
    assert pipelines.run("audit", topic)[0] == 0
    assert drawn[-1] == (f"auditing {topic}, 30 records", 3, 3)


def test_nothing_is_asked_where_nobody_would_see_the_bar(
    pipelines: Pipelines, spark_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_broker.produce(topic, [record(0)])
    monkeypatch.setattr(pipeline_tasks_bar, "repeating", lambda *given: pytest.fail("a bar in a pipe"))
    assert pipelines.run("audit", topic)[0] == 0


def waits_for_files(folder: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A task that ends when there is a file with its number. (Inside: executors know nothing of this module.)"""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import time

        for batch in batches:
            for number in batch.column(0).to_pylist():
                while not os.path.exists(f"{folder}/{number}"):
                    time.sleep(0.01)
            yield batch

    return work


def test_tasks_are_counted_while_spark_works(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 4, 1, 4).collect()  # is not counted: it was before
    counter = TaskCounter(spark)
    assert counter.count() == TaskCounts(0, 0)
    frame = spark.range(0, 2, 1, 2).mapInArrow(waits_for_files(str(tmp_path)), "id long")
    working = threading.Thread(target=frame.collect)
    working.start()
    try:
        eventually(lambda: counter.count() == TaskCounts(0, 2))
        (tmp_path / "1").touch()
        eventually(lambda: counter.count() == TaskCounts(1, 2))
    finally:
        for number in range(2):
            (tmp_path / str(number)).touch()
        working.join(60)
    eventually(lambda: counter.count() == TaskCounts(2, 2))


def test_where_nobody_counts_tasks_the_bar_shows_that_time_goes_by(drawn: Drawn) -> None:
    """As a session of Spark Connect, which has no context."""
    with pipeline_tasks_bar.tasks_bar(SimpleNamespace(), "reading"):  # type: ignore[arg-type]
        eventually(lambda: len(drawn) > 1)
    assert set(drawn) == {("reading", 0, None)}
