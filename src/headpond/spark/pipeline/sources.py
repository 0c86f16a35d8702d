"""Topics to views: reading, decoding, and what becomes of records that can't be read.

Columns     those of the record, then ``_key``, ``_topic``, ``_partition``, ``_offset``, ``_timestamp``,
            ``_tombstone`` and, where it is asked for, ``_headers``.
Readings    stream; table: all records that there are when the run starts; latest: of these the last of each key,
            tombstones left out.
Bad ones    fail the run with topic, partition and offset; or are left out here, and sent by ``dead_letters``: a query
            of its own, so that it is exactly once however many sinks there are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headpond.spark.pipeline import model
from headpond.spark.pipeline.columns import column
from headpond.spark.pipeline.decoding import REASON, RECORD, decode
from headpond.spark.pipeline.failures import RunFailed
from headpond.spark.pipeline.model import INFERRED, SAMPLE_RECORDS, Pipeline, Source
from headpond.spark.pipeline.options import read_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


Starts = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Source -> topic -> partition -> offset, for sources whose bad records are sent from there on."""


class Sources:
    """The sources of one pipeline at one broker. ``schemas`` are kept between runs: those that were inferred stay."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, bootstrap: str, schemas: dict[str, str]) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._schemas = {source.name: self._schema(source, schemas.get(source.name)) for source in pipeline.sources}

    @property
    def schemas(self) -> dict[str, str]:
        """Those that were inferred, for the folder to keep."""
        inferred = [one.name for one in self._pipeline.sources if one.format.schema == INFERRED]
        return {name: self._schemas[name].json() for name in inferred}

    def view(self, source: Source, group: str) -> DataFrame:
        """The good records. ``group`` is told how far a stream is."""
        options = read_options(self._pipeline, source, self._bootstrap)
        if source.is_stream:
            options["kafka.group.id"] = group
            raw = self._spark.readStream.format("headpond").options(**options).load()
        else:
            raw = self._spark.read.format("headpond").options(**options).load()
        decoded = decode(raw, source.format, self._schemas[source.name])
        if source.reading == "latest":
            decoded = _latest(decoded)
        good = decoded.filter(self._is_good(source))
        fields = [column(name, of=RECORD).alias(name) for name in self._schemas[source.name].names]
        view = good.select(*fields, *_metadata(source))
        if source.watermark is not None:
            view = with_watermark(view, source.watermark, f"{source.place}: source {source.name}: ")
        return view

    def dead_letters(self, group: str, starts: Starts) -> DataFrame | None:
        """The bad records of all sources, as they go to the dead-letter topic."""
        if not self._pipeline.bad_records.are_kept:
            return None
        kept = [
            self._letters(source, group, starts) for source in self._pipeline.sources if source.format.kind != "binary"
        ]
        return reduce(lambda one, other: one.union(other), kept) if kept else None

    def _letters(self, source: Source, group: str, starts: Starts) -> DataFrame:
        given = read_options(self._pipeline, source, self._bootstrap)
        start = json.dumps(starts[source.name]) if source.name in starts else None
        if not source.is_stream:  # a table is read again and again: its bad records are sent once
            start = "earliest"
        if start is not None:
            given = {
                name: value for name, value in given.items() if not name.lower().startswith(("starting", "ending"))
            }
            given["startingOffsets"] = start
        given |= {"kafka.group.id": group, "includeHeaders": "true"}
        raw = self._spark.readStream.format("headpond").options(**given).load()
        bad = decode(raw, source.format, self._schemas[source.name]).filter(F.col(REASON).isNotNull())
        facts = {
            "reason": F.col(REASON),
            "topic": F.col("topic"),
            "partition": F.col("partition").cast("string"),
            "offset": F.col("offset").cast("string"),
            "timestamp": F.date_format("timestamp", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"),
            "pipeline": F.lit(self._pipeline.name),
            "source": F.lit(source.name),
        }
        told = F.array(*(_header(f"dead-letter.{name}", value) for name, value in facts.items()))
        own = F.coalesce(F.col("headers"), F.expr("CAST(array() AS array<struct<key:string,value:binary>>)"))
        return bad.select("key", "value", F.concat(own, told).alias("headers"))

    def _is_good(self, source: Source) -> Column:
        if self._pipeline.bad_records.are_kept:
            return F.col(REASON).isNull()
        sentence = F.concat(
            F.lit(f"source {source.name}: the record at offset "),
            F.col("offset").cast("string"),
            F.lit(" of "),
            F.col("topic"),
            F.lit("-"),
            F.col("partition").cast("string"),
            F.lit(" can't be read: "),
            F.col(REASON),
        )
        return F.when(F.col(REASON).isNull(), F.lit(True)).otherwise(F.raise_error(sentence).cast("boolean"))

    # --- schemas ------------------------------------------------------------------------------------------------------

    def _schema(self, source: Source, kept: str | None) -> StructType:
        kind, text = source.format.kind, source.format.schema
        if kind in ("string", "binary"):
            return StructType().add("value", kind)
        if kind == "avro":
            from headpond.spark.pipeline.avro_codec import column_types

            return StructType.fromDDL(column_types(source.format))
        assert text is not None
        if text != INFERRED:
            return StructType.fromDDL(text)
        return self._inferred(source) if kept is None else _from_json(kept)

    def _inferred(self, source: Source) -> StructType:
        options = read_options(self._pipeline, source, self._bootstrap)
        options = {
            name: value for name, value in options.items() if not name.lower().startswith(("starting", "max", "min"))
        }
        sample = self._spark.read.format("headpond").options(**options).load()
        texts = sample.filter(F.col("value").isNotNull()).select(F.col("value").cast("string")).limit(SAMPLE_RECORDS)
        rows = [row[0] for row in texts.collect()]
        frame = self._spark.createDataFrame([(text,) for text in rows], "value string")
        found = self._spark.read.json(frame, mode="DROPMALFORMED") if rows else None
        if found is None or not found.columns:
            where = ", ".join(source.topics) or source.pattern
            raise RunFailed(f"{source.place}: source {source.name}: {where} has no JSON yet to infer a schema from")
        if taken := [name for name in found.columns if name in model.METADATA]:
            raise RunFailed(
                f"{source.place}: source {source.name}: {taken[0]} is the name of a column that every source has"
            )
        return found.schema


def with_watermark(frame: DataFrame, watermark: model.Watermark, what: str) -> DataFrame:
    if watermark.column not in frame.columns:
        from headpond.model.nearest import did_you_mean

        hint = did_you_mean(watermark.column, frame.columns)
        raise RunFailed(f"{what}watermark: there is no column {watermark.column}{hint}")
    return frame.withWatermark(watermark.column, watermark.delay)


def _latest(decoded: DataFrame) -> DataFrame:
    """The last record of each key; one whose last is a tombstone is gone. Records without a key are nobody's last.

    A key that is in several partitions, because their number was changed, has the record with the latest timestamp of
    those, as in a snapshot: offsets of different partitions say nothing about each other."""
    keyed = decoded.filter(F.col("key").isNotNull())
    last = F.max_by(F.struct(*decoded.columns), F.col("offset")).alias("_last")
    by_time = F.struct(F.col("_last.timestamp"), F.col("_last.partition"))
    by_partition = keyed.groupBy("topic", "key", "partition").agg(last)
    by_key = by_partition.groupBy("topic", "key").agg(F.max_by(F.col("_last"), by_time).alias("_last"))
    return by_key.select("_last.*").filter(F.col("value").isNotNull())


def _metadata(source: Source) -> list[Column]:
    key = F.col("key") if source.key == "binary" else F.col("key").cast("string")
    found = [
        key.alias(model.KEY),
        F.col("topic").alias(model.TOPIC),
        F.col("partition").alias(model.PARTITION),
        F.col("offset").alias(model.OFFSET),
        F.col("timestamp").alias(model.TIMESTAMP),
        F.col("value").isNull().alias(model.TOMBSTONE),
    ]
    return [*found, F.col("headers").alias(model.HEADERS)] if source.with_headers else found


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _from_json(text: str) -> StructType:
    return StructType.fromJson(json.loads(text))
