"""Whether the state that a checkpoint keeps fits the steps as they are now: Spark's own answer, before any batch.

Spark compares the two when it plans the first batch of a run; by then the batch is in the log. Here the same plan is
made of the same view with a copy of what the checkpoint says about its state (not of the state itself), and nothing is
executed. It asks Spark's inside, which a Spark Connect server does not show: there only the run itself tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headpond.runtime.copies import copied_for_now
from headpond.spark.pipeline.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DESCRIPTIONS = ("_metadata", "_stateSchema")
"""Folders of a state that say what is in it."""
_NO_ID = "00000000-0000-0000-0000-000000000000"


def check_state(frame: DataFrame, mode: str, checkpoint: Checkpoint) -> None:
    """Raises Spark's error where the state does not fit. ``frame``: the stream that is written in this mode."""
    line = checkpoint.conf_line()
    if line is None:
        return
    with copied_for_now(f"{checkpoint.path}/state", _DESCRIPTIONS) as copy:
        _plan(frame, mode, checkpoint, line, copy)


def _plan(frame: DataFrame, mode: str, checkpoint: Checkpoint, line: str, state: str) -> None:
    spark: Any = frame.sparkSession
    jvm = spark._jvm
    streaming = jvm.org.apache.spark.sql.execution.streaming
    kind = streaming.runtime.IncrementalExecution
    frames: Any = frame._jdf
    execution = kind(
        spark._jsparkSession,
        frames.queryExecution().analyzed(),
        getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())(),
        state,
        jvm.java.util.UUID.fromString(checkpoint.query_id or _NO_ID),
        jvm.java.util.UUID.fromString(_NO_ID),
        max(checkpoint.planned, checkpoint.committed + 1),
        getattr(getattr(jvm, "scala.None$"), "MODULE$"),
        streaming.checkpointing.OffsetSeqMetadata.apply(line),
        streaming.runtime.WatermarkPropagator.noop(),
        True,  # the first batch of a run: the one that is compared
        *(getattr(kind, f"$lessinit$greater$default${number}")() for number in range(12, 17)),
    )
    execution.executedPlan()
