"""Views to queries: a topic (exactly once), a Parquet table (appended to, or upserted), the console."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as F

from headpond.spark.pipeline.columns import column
from headpond.spark.pipeline.encoding import encode
from headpond.spark.pipeline.failures import RunFailed
from headpond.spark.pipeline.figures import OBSERVED, ROWS
from headpond.spark.pipeline.folder import Folder
from headpond.spark.pipeline.last_rows import is_in_read_order, kept_columns
from headpond.spark.pipeline.markers import application_of
from headpond.spark.pipeline.model import METADATA, Pipeline, Sink
from headpond.spark.pipeline.options import write_options
from headpond.spark.pipeline.upsert import check_upsert, make_upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

Show = Callable[[Sink, "DataFrame", int], None]
"""Prints the rows of a batch for the console."""


class Output(NamedTuple):
    """One query to be: of a sink, or of the dead letters (without ``sink``)."""

    name: str
    sink: Sink | None
    frame: DataFrame
    group: str
    columns: dict[str, str]
    """What the sink gets to see: names and types."""


def columns_of(frame: DataFrame, sink: Sink) -> dict[str, str]:
    kept = kept_columns(frame, sink) if sink.upsert else frame.columns
    return {name: kind for name, kind in frame.dtypes if name in kept}


def check_remote(pipeline: Pipeline) -> None:
    """``RunFailed`` for a sink whose batches must come to this process: a Spark Connect server keeps them."""
    for sink in pipeline.sinks:
        what = f"{sink.place}: sink {sink.name}: "
        if sink.kind == "console":
            raise RunFailed(f"{what}a console can't be written with --remote: it would print where Spark runs")
        if sink.upsert:
            raise RunFailed(f"{what}a table with upsert can't be written with --remote")


def prepare(frame: DataFrame, sink: Sink) -> DataFrame:
    """The rows as the sink takes them; ``RunFailed`` where they don't fit it."""
    if sink.kind == "topic":
        return encode(frame, sink)
    if sink.upsert:
        check_upsert(frame, sink)
        return frame
    kept = [column(name) for name in frame.columns if name not in METADATA]
    for name in sink.partition_by:
        if name not in frame.columns:
            raise RunFailed(f"{sink.place}: sink {sink.name}: partition_by: {sink.input} has no column {name}")
    return frame.select(*kept) if kept else frame


def start(
    output: Output, pipeline: Pipeline, bootstrap: str, folder: Folder, identity: str, show: Show
) -> StreamingQuery:
    counted = output.frame.observe(OBSERVED, F.count(F.lit(1)).alias(ROWS))
    writer = (
        counted.writeStream.queryName(f"{pipeline.name}.{output.name}")
        .option("checkpointLocation", folder.checkpoint(output.name).path)
        .trigger(**_trigger(pipeline))
    )
    sink = output.sink
    if sink is None:
        options = _topic_options(pipeline, bootstrap, folder, pipeline.bad_records.topic, {})
        return writer.format("headpond").options(**options).start()
    writer = writer.outputMode(sink.mode)
    if sink.kind == "topic":
        options = _topic_options(pipeline, bootstrap, folder, sink.target, sink.options)
        if sink.mode == "update":
            return writer.foreachBatch(_updates(options, application_of(identity, sink))).start()
        return writer.format("headpond").options(**options).start()
    if sink.upsert:
        return writer.foreachBatch(make_upsert(sink, identity, is_in_order=is_in_read_order(output.frame))).start()
    if sink.kind == "parquet":
        if sink.partition_by:
            writer = writer.partitionBy(*sink.partition_by)
        return writer.format("parquet").options(**sink.options).option("path", sink.target).start()
    return writer.foreachBatch(lambda frame, batch_id: show(sink, frame, batch_id)).start()


def _topic_options(
    pipeline: Pipeline, bootstrap: str, folder: Folder, topic: str, more: Mapping[str, str]
) -> dict[str, str]:
    options = write_options(pipeline, bootstrap, topic, more)
    if not any(name.lower() == "stagingdir" for name in options):
        options["stagingDir"] = folder.staging
    return options


def _updates(options: dict[str, str], application: str) -> Callable[[DataFrame, int], None]:
    """Spark gives a sink that is written in Python no rows in mode update. So each batch is a write of its own, which
    the broker knows by its number: one that comes again is not written again, and one that comes after later ones is
    refused, for the checkpoint was set back."""

    def write(frame: DataFrame, batch_id: int) -> None:
        numbered = {**options, "txnAppId": application, "txnVersion": str(batch_id), "txnOlder": "fail"}
        frame.write.format("headpond").options(**numbered).mode("append").save()

    return write


def _trigger(pipeline: Pipeline) -> dict[str, Any]:
    return {"availableNow": True} if pipeline.trigger is None else {"processingTime": pipeline.trigger}
