"""How far Spark is with what it was asked for: its tasks, counted from another thread than the one that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TaskCounts(NamedTuple):
    done: int
    known: int
    """Of the stages that have begun: how many the next one has, Spark says when it begins."""


class TaskCounter:
    """Counts the tasks of whatever this session has begun since this was made."""

    def __init__(self, session: SparkSession) -> None:
        self._tracker = _tracker_of(session)
        self._before = frozenset(self._jobs())

    def count(self) -> TaskCounts | None:
        """None: nobody can tell, as with Spark Connect, or from a session that has ended."""
        if self._tracker is None:
            return None
        try:
            infos = [self._tracker.getStageInfo(stage) for stage in self._stages()]
        except Exception:  # the connection to Java, which may be closing: no reason to disturb the work
            return None
        # A stage whose rows are there already is listed and never begun.
        begun = [one for one in infos if one and one.numActiveTasks + one.numCompletedTasks + one.numFailedTasks]
        return TaskCounts(sum(one.numCompletedTasks for one in begun), sum(one.numTasks for one in begun))

    def _stages(self) -> set[int]:
        infos = [self._tracker.getJobInfo(job) for job in self._jobs() if job not in self._before]
        return {stage for info in infos if info for stage in info.stageIds}

    def _jobs(self) -> list[int]:
        return [] if self._tracker is None else list(self._tracker.getJobIdsForGroup(None))


def _tracker_of(session: SparkSession) -> Any:
    try:
        return session.sparkContext.statusTracker()
    except Exception:  # Spark Connect has no context
        return None
