"""The rows of a lake's topic as a DataFrame, of the files that are part of the lake and of no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headpond.spark.lake.state import LakeFile, TopicState
from headpond.spark.patterns import literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SPARK_SCHEMA = (
    "key binary, value binary, headers array<struct<key:string,value:binary>>, partition int, offset bigint, "
    "timestamp timestamp, timestampType int"
)
Spans = Mapping[int, tuple[int, int]]
"""Partition -> (from offset, end offset)."""


def files_with(state: TopicState, spans: Spans) -> list[str]:
    """The files that may hold records of these offsets."""
    return sorted(path for path, file in state.files.items() if _overlaps(file, spans))


def _overlaps(file: LakeFile, spans: Spans) -> bool:
    for partition, span in file.spans.items():
        wanted = spans.get(partition)
        if wanted is not None and span.from_offset < wanted[1] and wanted[0] < span.end_offset:
            return True
    return False


def frame_of(session: SparkSession, lake: str, state: TopicState, spans: Spans) -> DataFrame | None:
    """All rows of the files that may hold records of these offsets; None where there is no such file."""
    paths = files_with(state, spans)
    if not paths:
        return None
    return session.read.schema(SPARK_SCHEMA).parquet(*[literal(f"{lake}/{path}") for path in paths])


def between(spans: Spans) -> Column:
    """Whether a row is one of these offsets."""
    from pyspark.sql import functions as F

    count = max(spans, default=0) + 1
    nothing = (0, 0)
    starts = F.array(*[F.lit(spans.get(number, nothing)[0]).cast("bigint") for number in range(count)])
    ends = F.array(*[F.lit(spans.get(number, nothing)[1]).cast("bigint") for number in range(count)])
    place = F.col("partition")
    return (place < count) & (F.col("offset") >= starts[place]) & (F.col("offset") < ends[place])
