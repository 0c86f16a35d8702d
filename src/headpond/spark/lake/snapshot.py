"""The latest value of each key of a topic as a table, as of now or of a moment.

Latest      Within a partition, by offset. A key that is in several (their number was changed) has the record with the
            latest timestamp of those, and the higher partition's if these are the same.
Tombstones  A key whose latest value is null has no row. Records without a key are no state of anything: left out and
            counted, or refused.
A moment    By offset: records before it. By time: records whose own timestamp is not later, wherever they stand.
A crash     leaves a hidden folder beside the table, which the next run removes: the table is there as it was, or whole
            and new.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from headpond.client import Client
from headpond.model import TopicPartition
from headpond.spark.kafka.link import Link
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.rows import between, frame_of
from headpond.spark.lake.state import TopicState
from headpond.spark.lake.store import Lake
from headpond.spark.lake.table import Table
from headpond.spark.reading.cluster import earliest_offsets, latest_offsets
from headpond.spark.reading.options import parse_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    topic: str
    source: Mapping[str, str] = field(repr=False)
    """Options of the source; without effect for a lake."""
    lake: str | None
    table: str
    until_ms: int | None = None
    until_offset: int | None = None
    """Of every partition that has so many."""
    until_offsets: Mapping[int, int] | None = None
    """Of these partitions; the others are read to their ends."""
    refuse_null_keys: bool = False
    as_strings: bool = False
    may_overwrite: bool = False


class Extent(NamedTuple):
    """What a snapshot reads."""

    spans: dict[int, tuple[int, int]]
    """Partition -> (from offset, end offset)."""
    state: TopicState | None
    """Of the lake."""

    @property
    def offsets(self) -> int:
        return sum(end - start for start, end in self.spans.values())


class SnapshotSummary(NamedTuple):
    records: int
    keys: int
    """Rows of the table."""
    tombstones: int
    """Keys whose latest value is null."""
    null_keys: int
    """Records without a key."""


def find_extent(settings: SnapshotSettings) -> Extent:
    """Asks the brokers, or the lake. Writes nothing."""
    if settings.lake is None:
        options = parse_options(settings.source, is_stream=False)

        async def ask(client: Client) -> dict[int, tuple[int, int]]:
            ends = await latest_offsets(client, options, is_complete=True)
            begins = await earliest_offsets(client, ends.by_partition, options.client)
            return {tp.partition: (begins[tp], end) for tp, end in sorted(ends.by_partition.items())}

        with Link(options.client) as link:
            return Extent(_cut(link.run(ask), settings), None)
    lake = Lake(settings.lake)
    lake.mark()
    state = lake.state(settings.topic)
    if state is None:
        raise LakeError(f"{lake.path} does not hold topic {settings.topic}")
    bounds = {
        partition: (reach.first_offset, reach.next_offset) for partition, reach in sorted(state.partitions.items())
    }
    return Extent(_cut(bounds, settings), state)


def _cut(bounds: dict[int, tuple[int, int]], settings: SnapshotSettings) -> dict[int, tuple[int, int]]:
    named = settings.until_offsets or {}
    for partition, until in named.items():
        if partition not in bounds:
            raise LakeError(f"topic {settings.topic} has no partition {partition}")
        start, end = bounds[partition]
        if not start <= until <= end:
            tp = TopicPartition(settings.topic, partition)
            raise LakeError(f"{tp} has no offset {until}: what can be read of it reaches from {start} to {end}")
    cut = {}
    for partition, (start, end) in bounds.items():
        until = named.get(partition, end if settings.until_offset is None else settings.until_offset)
        cut[partition] = (start, max(start, min(end, until)))
    return cut


def take_snapshot(session: SparkSession, settings: SnapshotSettings, extent: Extent, table: Table) -> SnapshotSummary:
    """Writes the table, and puts it where it belongs when it is whole."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")  # the default is a relic
    read, latest = Observation(), Observation()
    records = _frame(session, settings, extent)
    if settings.until_ms is not None:
        records = records.where(F.unix_millis("timestamp") <= F.lit(settings.until_ms))
    records = records.observe(
        read, F.count(F.lit(1)).alias("records"), F.count_if(F.col("key").isNull()).alias("null_keys")
    )
    by_key = _latest(records.where(F.col("key").isNotNull()), is_one_partition=len(extent.spans) == 1)
    by_key = by_key.observe(
        latest, F.count(F.lit(1)).alias("keys"), F.count_if(F.col("value").isNull()).alias("tombstones")
    )
    rows = by_key.where(F.col("value").isNotNull())
    if settings.as_strings:
        for name in ("key", "value"):
            rows = rows.withColumn(name, F.make_valid_utf8(F.col(name).cast("string")))
    with table.being_written() as folder:
        rows.write.parquet(folder)
        seen, kept = read.get, latest.get
        null_keys, tombstones = int(seen["null_keys"]), int(kept["tombstones"])
        if null_keys and settings.refuse_null_keys:
            raise LakeError(f"{null_keys:,} records of {settings.topic} have no key: --null-keys skip leaves them out")
    return SnapshotSummary(int(seen["records"]), int(kept["keys"]) - tombstones, tombstones, null_keys)


def _frame(session: SparkSession, settings: SnapshotSettings, extent: Extent) -> DataFrame:
    import json

    columns = ("key", "value", "headers", "partition", "offset", "timestamp")
    if extent.state is not None:
        assert settings.lake is not None
        frame = frame_of(session, Lake(settings.lake).absolute_path, extent.state, extent.spans)
        if frame is not None:
            return frame.where(between(extent.spans)).select(*columns)
        return session.createDataFrame([], _EMPTY)
    starts = {str(partition): start for partition, (start, _) in extent.spans.items()}
    ends = {str(partition): end for partition, (_, end) in extent.spans.items()}
    return (
        session.read.format("headpond")
        .options(**settings.source)
        .option("startingOffsets", json.dumps({settings.topic: starts}))
        .option("endingOffsets", json.dumps({settings.topic: ends}))
        .load()
        .select(*columns)
    )


_EMPTY = (
    "key binary, value binary, headers array<struct<key:string,value:binary>>, partition int, offset bigint, "
    "timestamp timestamp"
)


def _latest(records: DataFrame, *, is_one_partition: bool) -> DataFrame:
    from pyspark.sql import functions as F

    rest = F.struct("value", "headers", "partition", "offset", "timestamp")
    by_partition = records.groupBy("key", "partition").agg(F.max_by(rest, F.col("offset")).alias("one"))
    if not is_one_partition:
        by_time = F.struct(F.col("one.timestamp"), F.col("one.partition"))
        by_partition = by_partition.groupBy("key").agg(F.max_by(F.col("one"), by_time).alias("one"))
    return by_partition.select("key", "one.*")
