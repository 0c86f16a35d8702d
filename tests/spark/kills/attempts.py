"""Who has run which task, noted by the tasks themselves: so that a test knows what Spark has done again.

Spark gives the tasks of a stage that it does again the same numbers, the attempt's 0 among them; only the id of a task
is its own. A partition that two tasks have ended is one that the driver hears of twice.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from support.waiting import eventually

WRITES = "writes"
TWIN_S_MAX = 200.0


class Attempt(NamedTuple):
    """One call of ``write``. The ids of stages and tasks begin anew with each driver."""

    driver: int
    batch_id: int
    stage: int
    partition: int
    number: int
    task: int

    @property
    def work(self) -> tuple[int, int, int, int]:
        """What Spark means to be done once, unless it does a stage again."""
        return self.driver, self.batch_id, self.stage, self.partition


def this_attempt(batch_id: int, driver: int) -> Attempt:
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None
    return Attempt(
        driver, batch_id, task.stageId(), task.partitionId(), task.attemptNumber(), int(task.taskAttemptId())
    )


def note_end(folder: str, attempt: Attempt) -> None:
    with open(f"{folder}/{WRITES}", "ab", buffering=0) as log:  # one call, at the end of the file: lines stay whole
        log.write((" ".join(map(str, attempt)) + "\n").encode())


def ended(folder: str | Path) -> list[Attempt]:
    path = os.path.join(folder, WRITES)
    if not os.path.exists(path):
        return []
    return [Attempt(*map(int, line.split())) for line in Path(path).read_text().splitlines()]


def wait_for_twin(folder: str, attempt: Attempt) -> None:
    """Until another task has ended the work of this one."""
    eventually(
        lambda: any(one.work == attempt.work for one in ended(folder)),
        what="another task with the same work",
        deadline_s=TWIN_S_MAX,
    )


def ended_twice(folder: Path) -> list[int]:
    """The micro-batches in which a partition was written to its end by two tasks, both the first of their stage."""
    counts = Counter(one.work for one in ended(folder) if one.number == 0)
    return sorted({batch_id for (_, batch_id, _, _), count in counts.items() if count > 1})
