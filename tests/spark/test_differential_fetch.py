"""Topics made by chance, read the way a task of Spark reads them and by an ordinary client: the same records in every
field. Without Spark and without Arrow: planning, fetching and what a reader must not see."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from headpond.client.fetched import FetchedBatch
from headpond.spark.kafka.link import Link
from headpond.spark.reading.cluster import bounds_of_batch
from headpond.spark.reading.offsets import Offsets
from headpond.spark.reading.options import SourceOptions, parse_options
from headpond.spark.reading.planning import limit_in_proportion, ranges_between, split
from headpond.spark.reading.range_reader import fetch_range
from spark.random_topics import ISOLATIONS, RandomTopic, Row, random_topics
from spark.reads import options_of

TOPICS = 2


@pytest.fixture(scope="module")
def topics() -> Iterator[list[RandomTopic]]:
    with random_topics(TOPICS) as made:
        yield made


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("number", range(TOPICS))
def test_tasks_fetch_exactly_the_records_that_a_client_reads(
    topics: list[RandomTopic], number: int, isolation: str
) -> None:
    topic = topics[number]
    chance = random.Random(topic.seed)
    fetch_bytes = str(chance.choice((1, 5_000, 4_000_000)))
    given = {"kafka.isolation.level": isolation, "kafka.max.partition.fetch.bytes": fetch_bytes}
    options = parse_options(options_of(topic.broker, topic.name, **given), is_stream=False)
    with Link(options.client) as link:
        start, end = link.run(lambda client: bounds_of_batch(client, options))
    found = list(in_micro_batches(options, start, end, chance))
    assert sorted(found, key=lambda row: row.partition) == topic.rows(isolation), topic


def in_micro_batches(options: SourceOptions, start: Offsets, end: Offsets, chance: random.Random) -> Iterator[Row]:
    """From start to end in steps as a stream takes them, each shared among tasks."""
    while not start.is_same_place(end):
        until = limit_in_proportion(start.by_partition, end.by_partition, chance.randint(1, 300))
        here = Offsets(until, end.topic_ids)
        per_task = chance.choice((None, 20, 50))
        for wanted in split(ranges_between(start, here), partitions_min=None, records_per_partition_max=per_task):
            for batches in fetch_range(options, wanted, end.topic_ids[wanted.tp.topic]):
                yield from (row for batch in batches for row in rows_of(batch))
        start = here


def rows_of(batch: FetchedBatch) -> Iterator[Row]:
    for record in batch.records:
        headers = record.headers or None
        kind = int(batch.header.is_append_time)
        yield Row(*record.tp, record.offset, record.key, record.value, record.timestamp_ms, kind, headers)
