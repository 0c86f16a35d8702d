"""Columns to bytes: a row becomes a record's key, value, headers and timestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from headpond.model.nearest import did_you_mean
from headpond.spark.pipeline.columns import column
from headpond.spark.pipeline.failures import RunFailed
from headpond.spark.pipeline.model import HEADERS, METADATA, Sink

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def encode(frame: DataFrame, sink: Sink) -> DataFrame:
    """The columns that the sink of topics takes. ``RunFailed`` for a column that is not there."""
    for what in ("key", "timestamp", "headers"):
        _check_column(frame, sink, what, getattr(sink, what))
    columns = [_value(frame, sink).alias("value")]
    if sink.key is not None:
        is_binary = isinstance(frame.schema[sink.key].dataType, BinaryType)
        columns.append((column(sink.key) if is_binary else column(sink.key).cast("string")).alias("key"))
    if sink.timestamp is not None:
        columns.append(column(sink.timestamp).cast("timestamp").alias("timestamp"))
    if sink.headers is not None:
        columns.append(column(sink.headers).alias("headers"))
    return frame.select(*columns)


def _value(frame: DataFrame, sink: Sink) -> Column:
    hidden = (*METADATA, *([sink.headers] if sink.headers and sink.headers != HEADERS else []))
    names = [name for name in frame.columns if name not in hidden]
    kind = sink.format.kind
    if kind in ("string", "binary"):
        if "value" not in names:
            raise RunFailed(f"{sink.place}: sink {sink.name}: format {kind} needs a column named value")
        return column("value").cast(kind) if kind == "string" else column("value")
    if not names:
        raise RunFailed(f"{sink.place}: sink {sink.name}: {sink.input} has no columns to write")
    row = F.struct(*map(column, names))
    if kind == "csv":
        return F.to_csv(row, dict(sink.format.options))
    if kind == "avro":
        from pyspark.sql.functions import arrow_udf

        from headpond.spark.pipeline.avro_codec import make_encoder

        return arrow_udf(make_encoder(sink.format), BinaryType())(row)
    return F.to_json(row, {"ignoreNullFields": "false", **sink.format.options})


def _check_column(frame: DataFrame, sink: Sink, what: str, name: str | None) -> None:
    if name is not None and name not in frame.columns:
        hint = did_you_mean(name, frame.columns)
        raise RunFailed(
            f"{sink.place}: sink {sink.name}: {what} is {name!r}, and {sink.input} has no such column{hint}"
        )
