"""What Spark's Python workers do first: what they have loaded is left out of their garbage collections."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pytest

from headpond import __version__
from headpond.spark import worker
from headpond.spark.worker import FIRST_TASKS, VersionsDiffer, begin_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


class Specification(NamedTuple):
    name: str


@pytest.fixture
def freezes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with each; nothing of this process is frozen."""
    seen: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: seen.append("frozen"))
    monkeypatch.setattr(worker, "_tasks_to_watch", FIRST_TASKS)
    return seen


def test_a_task_that_another_version_has_planned_is_refused(freezes: list[str]) -> None:
    with pytest.raises(VersionsDiffer, match=r"the driver has headpond 9\.9 and this executor has"):
        begin_task("9.9")


def test_a_program_of_the_users_keeps_its_garbage_collections(freezes: list[str]) -> None:
    begin_task(__version__)
    assert freezes == []


def test_a_worker_leaves_out_what_its_first_tasks_have_loaded_and_no_more(
    freezes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", Specification("pyspark.daemon"))
    for _ in range(FIRST_TASKS + 5):
        begin_task(__version__)
    assert len(freezes) == FIRST_TASKS


def test_a_worker_of_spark_has_little_left_to_look_at_after_its_first_task(spark: SparkSession) -> None:
    # Spark asks the worker that is free: one task at a time is always the same one.
    for _ in range(2):
        (found,) = spark.range(0, 1, 1, 1).mapInArrow(_in_a_task_of_ours, "watched long, frozen long").collect()
    assert found["frozen"] > 10 * found["watched"]


def _in_a_task_of_ours(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a worker."""
    begin_task(__version__)
    watched, frozen = len(gc.get_objects()), gc.get_freeze_count()
    import pyarrow

    import headpond.spark.codec  # noqa: F401

    for _ in batches:
        pass
    yield pyarrow.RecordBatch.from_pydict({"watched": [watched], "frozen": [frozen]})
