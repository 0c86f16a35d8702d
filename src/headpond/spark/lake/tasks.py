"""Work on executors: a function, a list of what each task is to do, an answer from each. No rows in between.

The work goes along with the function, and each task picks its part by its number: that runs on every kind of session,
Spark Connect included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from headpond import __version__

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Work = TypeVar("Work", bound=msgspec.Struct)
Answer = TypeVar("Answer", bound=msgspec.Struct)

_ANSWERS = "task long, answer binary"


def on_executors(
    session: SparkSession, function: Callable[[Work], Answer], works: Sequence[Work], answer_type: type[Answer]
) -> list[Answer]:
    """The answers, in the order of ``works``. ``function`` is one that a module has, by name."""
    if not works:
        return []
    rows = session.range(0, len(works), 1, len(works)).mapInArrow(_Task(function, list(works)), _ANSWERS).collect()
    answers = {row["task"]: msgspec.json.decode(bytes(row["answer"]), type=answer_type) for row in rows}
    return [answers[number] for number in range(len(works))]


def parallelism(session: SparkSession) -> int:
    """How many tasks run side by side."""
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except Exception:  # Spark Connect has no context: as many parts as a range has there
        from pyspark.sql.functions import spark_partition_id

        return max(1, session.range(0, 1 << 16).select(spark_partition_id()).distinct().count())


class _Task:
    """Spark pickles it."""

    def __init__(self, function: Callable[[Any], Any], works: list[Any]) -> None:
        self._function = function
        self._works = works
        self._planned_by = __version__

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from headpond.spark.worker import begin_task

        begin_task(self._planned_by)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                answer = msgspec.json.encode(self._function(self._works[number]))
                yield pa.RecordBatch.from_pydict(
                    {"task": pa.array([number], pa.int64()), "answer": pa.array([answer], pa.binary())}
                )
