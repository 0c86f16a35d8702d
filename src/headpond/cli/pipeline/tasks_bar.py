"""A bar for work that Spark does in one go: drawn on a timer, from how many of its tasks are done.

Where nobody can tell how many that are (Spark Connect), and as long as there is only one, it shows that time goes by.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headpond.cli.common.progress import REFRESH_S, Progress
from headpond.runtime.timer_thread import repeating

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def tasks_bar(session: SparkSession, what: str) -> Iterator[None]:
    """While the block works."""
    from headpond.spark.lake.task_counts import TaskCounter

    with Progress(what, unit="tasks") as bar:
        if not bar.is_wanted:
            yield
            return
        counter = TaskCounter(session)

        def draw() -> None:
            counts = counter.count()
            if counts is None or counts.known < 2:
                bar.stand_at(0, None)
            else:
                bar.stand_at(counts.done, counts.known)

        with repeating(draw, REFRESH_S):
            yield
