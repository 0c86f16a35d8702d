"""Topics made by chance, read by Spark and by an ordinary client: the same rows in every field, whatever the sizes of
batches and tasks are, and wherever a query stops and starts again."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark.random_topics import ISOLATIONS, RandomTopic, Row, random_topics
from spark.reads import QUERY_S_MAX, batch, options_of, stream

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

import pyarrow as pa
import pyarrow.parquet as pq

from headpond.spark.reading.options import parse_options
from headpond.spark.source.batch import BatchReader
from spark.engine import Engine
from spark.lake_support import Pipelines, share_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headpond.spark.reading.offsets import Document

TOPICS = 3
SHORT_FORM = pytest.mark.tier
"""One topic as a table, in micro-batches, and as a lake."""
NUMBERS = [pytest.param(0, marks=SHORT_FORM), *range(1, TOPICS)]
COLUMNS = ("topic", "partition", "offset", "key", "value", "timestamp", "timestampType", "headers")
SELECTED = [name if name != "timestamp" else "unix_micros(timestamp) AS timestamp" for name in COLUMNS]


@pytest.fixture(scope="module")
def topics() -> Iterator[list[RandomTopic]]:
    with random_topics(TOPICS) as made:
        yield made


def given_for(topic: RandomTopic, isolation: str, **more: str) -> dict[str, str]:
    fixed = {"includeHeaders": "true", "kafka.isolation.level": isolation}
    return options_of(topic.broker, topic.name, **fixed, **more)


def row_of(fields: Any) -> Row:
    topic, partition, offset, key, value, timestamp_us, kind, headers = fields
    assert timestamp_us % 1_000 == 0
    return Row(
        topic,
        partition,
        offset,
        None if key is None else bytes(key),
        None if value is None else bytes(value),
        timestamp_us // 1_000,
        kind,
        None
        if headers is None
        else tuple((one["key"], None if one["value"] is None else bytes(one["value"])) for one in headers),
    )


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.partition, row.offset))


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_table_has_exactly_the_rows_that_a_client_reads(
    spark: SparkSession, topics: list[RandomTopic], number: int, isolation: str
) -> None:
    topic = topics[number]
    expected = topic.rows(isolation)
    chance = random.Random(topic.seed)
    whole = batch(spark, given_for(topic, isolation)).selectExpr(*SELECTED)
    assert in_order([row_of(row) for row in whole.collect()]) == expected, topic
    start, end = some_range(expected, topic.partitions, chance)
    part = given_for(
        topic,
        isolation,
        startingOffsets=json.dumps({topic.name: start}),
        endingOffsets=json.dumps({topic.name: end}),
        maxRecordsPerPartition=str(chance.randint(20, 200)),
        failOnDataLoss="false",  # the range may begin before the log does
    )
    found = in_order([row_of(row) for row in batch(spark, part).selectExpr(*SELECTED).collect()])
    assert found == [row for row in expected if start[row.partition] <= row.offset < end[row.partition]], topic


def some_range(rows: list[Row], partitions: int, chance: random.Random) -> tuple[dict[int, int], dict[int, int]]:
    """Offsets between which each partition is read, those that no record has among them."""
    ends = dict.fromkeys(range(partitions), 0)
    for row in rows:
        ends[row.partition] = row.offset + 1
    start = {partition: chance.randint(0, end) for partition, end in ends.items()}
    return start, {partition: chance.randint(start[partition], end) for partition, end in ends.items()}


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_stream_that_fails_and_starts_again_has_exactly_the_rows_that_a_client_reads(
    spark: SparkSession, topics: list[RandomTopic], isolation: str, tmp_path: Path
) -> None:
    topic = topics[0]
    expected = topic.rows(isolation)
    chance = random.Random(topic.seed)
    size = max(len(expected) // 6, 1)
    batches: dict[int, list[Row]] = {}

    def keep(frame: DataFrame, batch_id: int) -> None:
        rows = in_order([row_of(row) for row in frame.selectExpr(*SELECTED).collect()])
        assert batches.setdefault(batch_id, rows) == rows, "a batch that is done again is another one"
        if batch_id == fails_at:
            raise RuntimeError("stopped by the test")

    for fails_at in (1, 2, None):  # batch 0 only tells where the query begins
        limit = str(chance.randint(size, 2 * size))
        given = given_for(topic, isolation, startingOffsets="earliest", maxOffsetsPerTrigger=limit)
        writer = stream(spark, given).writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
        query = writer.trigger(availableNow=True).start()
        if fails_at is None:
            assert query.awaitTermination(QUERY_S_MAX)
        else:
            with pytest.raises(Exception, match="stopped by the test"):
                query.awaitTermination(QUERY_S_MAX)
    found = [row for _, rows in sorted(batches.items()) for row in rows]
    assert in_order(found) == expected, topic


@pytest.mark.parametrize("number", NUMBERS[:2])
def test_a_lake_and_a_snapshot_have_exactly_what_a_client_reads(
    spark: SparkSession,
    topics: list[RandomTopic],
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = topics[number]
    expected = topic.rows("read_committed")
    share_session(spark, monkeypatch)
    pipelines = Pipelines(topic.broker, capsys)
    pipelines.json("archive", topic.name, "--to", str(tmp_path / "lake"))
    archived = pq.read_table(tmp_path / "lake" / f"topic={topic.name}", partitioning=None)
    named = archived.append_column("topic", pa.array([topic.name] * len(archived), pa.string()))
    assert in_order([row for some in named.to_batches() for row in rows_of(some)]) == expected, topic
    latest = pa.table(latest_of_each_key(expected))
    for source in ((), ("--from", str(tmp_path / "lake"))):
        table = tmp_path / f"table-{len(source)}"
        pipelines.json("snapshot", topic.name, *source, "--to", str(table))
        found = pq.read_table(table).sort_by("key")
        found = found.set_column(5, "timestamp", found["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()))
        assert found.to_pylist() == latest.select(found.column_names).to_pylist(), topic


def latest_of_each_key(rows: list[Row]) -> dict[str, list[Any]]:
    """As the guide defines it: by offset in a partition, and by time where a key is in several."""
    by_partition = {(row.key, row.partition): row for row in rows if row.key is not None}
    latest: dict[bytes, Row] = {}
    for row in sorted(by_partition.values(), key=lambda row: (row.timestamp_ms, row.partition)):
        assert row.key is not None
        latest[row.key] = row
    kept = [latest[key] for key in sorted(latest) if latest[key].value is not None]
    return {
        "key": [row.key for row in kept],
        "value": [row.value for row in kept],
        "headers": [row.headers and [{"key": key, "value": value} for key, value in row.headers] for row in kept],
        "partition": [row.partition for row in kept],
        "offset": [row.offset for row in kept],
        "timestamp": [row.timestamp_ms for row in kept],
    }


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("number", NUMBERS)
def test_times_lead_to_the_offsets_that_a_client_is_given(
    topics: list[RandomTopic], number: int, isolation: str
) -> None:
    """Timestamps come in any order here, and are of both kinds."""
    topic = topics[number]
    expected = topic.rows(isolation)
    chance = random.Random(topic.seed)
    known = sorted({row.timestamp_ms for row in expected})
    for _ in range(5):
        first, last = sorted(chance.choice(known) + chance.choice((-1, 0, 1)) for _ in range(2))
        partitions = range(topic.partitions)
        start, end = (topic.offsets_at(dict.fromkeys(partitions, each), isolation) for each in (first, last))
        given = given_for(
            topic,
            isolation,
            startingOffsetsByTimestamp=json.dumps({topic.name: dict.fromkeys(partitions, first)}),
            startingOffsetsByTimestampStrategy="latest",
            endingTimestamp=str(last),
        )
        reader = BatchReader(parse_options(given, is_stream=False), COLUMNS)
        found = [row for part in reader.partitions() for some in reader.read(part) for row in rows_of(some)]
        beyond = float("inf")
        wanted = [
            row
            for row in expected
            if (beyond if (begin := start[row.partition]) is None else begin)
            <= row.offset
            < (beyond if (until := end[row.partition]) is None else until)
        ]
        assert in_order(found) == wanted, (topic, first, last)


@pytest.mark.parametrize("number", NUMBERS)
def test_micro_batches_of_any_size_with_restarts_have_together_what_a_client_reads(
    topics: list[RandomTopic], number: int
) -> None:
    """The stream reader as Spark asks it. Transactions are open when the query reads up to them, and decided later."""
    topic = topics[number]
    queries = [Restarted(topic, isolation) for isolation in ISOLATIONS]
    try:
        for query in queries:
            query.run()
            assert query.rows == topic.rows(query.isolation), topic
        for _ in range(2):
            topic.decide()
            topic.grow()
            for query in queries:
                query.run()
        topic.decide()
        for query in queries:
            query.run()
            assert query.rows == topic.rows(query.isolation), topic
    finally:
        for query in queries:
            query.stop()


class Restarted:
    """A query that is stopped between batches, and after a batch was planned but before it was done."""

    def __init__(self, topic: RandomTopic, isolation: str) -> None:
        self.isolation = isolation
        self._topic = topic
        self._chance = random.Random(topic.seed)
        self._log: list[Document] = []
        self._found: list[Row] = []
        self._engine = self._start()

    def _start(self) -> Engine:
        chance = self._chance
        more = {
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(chance.choice((5, 50, 500))),
            "maxRecordsPerPartition": str(chance.choice((30, 1_000))),
            "kafka.max.partition.fetch.bytes": str(chance.choice((1, 5_000, 4_000_000))),
        }
        return Engine(given_for(self._topic, self.isolation, **more), self._log, COLUMNS)

    def run(self) -> None:
        """To the end of what there is."""
        while True:
            start = self._engine.start
            end = self._engine.plan()
            if end is None:
                return
            if self._chance.random() < 0.2:
                self.stop()
                self._engine = self._start()
            for rows in self._engine.rows(start, end):
                rows.validate(full=True)
                self._found += rows_of(rows)

    def stop(self) -> None:
        self._engine.reader.stop()

    @property
    def rows(self) -> list[Row]:
        """As they came, but for the order among partitions, which there is none of."""
        return sorted(self._found, key=lambda row: row.partition)


def rows_of(rows: pa.RecordBatch) -> list[Row]:
    lists = [
        (rows.column(name).view(pa.int64()) if name == "timestamp" else rows.column(name)).to_pylist()
        for name in COLUMNS
    ]
    return [row_of(fields) for fields in zip(*lists, strict=True)]
