"""Streams in Spark itself that read a real Kafka: what ``tests/spark`` asks of them with Headpond, and what only shows
when the broker is another one: restarts, new topics of a pattern, and records that are gone before they are read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from interop.oracle import Oracle
from interop.programs import needs_kafka

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headpond.client import Client
from headpond.client.admin import Admin
from headpond.model import TopicPartition
from headpond.spark.session import start_session
from headpond.testing import Broker
from headpond.testing.records import Sendable, produce
from headpond.testing.topics import create_topic
from spark.conftest import SPARK_SETTINGS
from spark.reads import QUERY_S_MAX, Running, options_of, run_to_end, stream, values
from spark.test_spark_stream import (  # noqa: F401 - collected here, too, with Kafka as their broker
    test_a_batch_that_was_logged_but_not_committed_is_done_again_from_the_same_start,
    test_a_group_shows_how_far_a_query_is,
    test_a_query_goes_on_where_its_checkpoint_ends,
    test_a_topic_that_was_created_again_fails_the_query_or_is_read_anew,
    test_one_batch_only_reads_everything,
    test_progress_tells_start_end_and_latest,
)
from support.internal_client import run_with_client
from support.waiting import eventually

pytestmark = [pytest.mark.interop, needs_kafka]

PRODUCE_S_MAX = 60.0


class Kafka:
    """What the tests of Spark do with a broker."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    @property
    def bootstrap_servers(self) -> str:
        return self._oracle.bootstrap_servers

    def create_topic(self, name: str, partitions: int = 1) -> None:
        create_topic(("127.0.0.1", self._oracle.port), name, partitions, {})

    def produce(self, topic: str, records: list[Sendable]) -> None:
        produce(("127.0.0.1", self._oracle.port), topic, records, PRODUCE_S_MAX)

    def restart_after_kill(self) -> None:
        self._oracle.kill()
        self._oracle.start(self._oracle.port)


@pytest.fixture(scope="module")
def spark_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    oracle = Oracle(tmp_path_factory.mktemp("kafka") / "data").start()
    yield cast(Broker, Kafka(oracle))
    oracle.kill()


@pytest.fixture
def kafka(spark_broker: Broker) -> Kafka:
    return cast(Kafka, spark_broker)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = start_session("headpond-interop", master="local[2]", config=SPARK_SETTINGS)
    yield session
    session.stop()


@pytest.fixture
def topic() -> str:
    return f"spark-{uuid.uuid4().hex[:12]}"


def test_a_query_survives_the_kill_of_its_kafka(spark: SparkSession, kafka: Kafka, topic: str, tmp_path: Path) -> None:
    kafka.create_topic(topic, partitions=2)
    running = Running(stream(spark, given(kafka, subscribe=topic)), tmp_path, processingTime="0 seconds")
    try:
        sent: list[str] = []
        for life in range(2):
            more = [f"{life}/{number:03}" for number in range(50)]
            kafka.produce(topic, list(more))
            sent += more
            wait_for_rows(running, len(sent))
            kafka.restart_after_kill()
        kafka.produce(topic, ["last"])
        wait_for_rows(running, len(sent) + 1)
        assert values(running.rows) == sorted([*sent, "last"])
    finally:
        running.query.stop()


def test_a_pattern_finds_topics_that_come_while_its_query_runs(
    spark: SparkSession, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    kafka.produce(f"{topic}-a", ["a"])
    frame = stream(spark, given(kafka, subscribePattern=f"{topic}-.*"))
    running = Running(frame, tmp_path, processingTime="0 seconds")
    try:
        wait_for_rows(running, 1)
        kafka.produce(f"other-{topic}", ["not of the pattern"])
        kafka.produce(f"{topic}-b", ["b", "c"])
        wait_for_rows(running, 3)
        assert {(row["topic"], bytes(row["value"]).decode()) for row in running.rows} == {
            (f"{topic}-a", "a"),
            (f"{topic}-b", "b"),
            (f"{topic}-b", "c"),
        }
    finally:
        running.query.stop()


def test_records_that_are_gone_before_they_are_read_fail_the_query_or_are_passed_over(
    spark: SparkSession, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    kafka.produce(topic, ["0", "1"])
    strict = given(kafka, subscribe=topic)
    assert values(run_to_end(stream(spark, strict), tmp_path)) == ["0", "1"]
    kafka.produce(topic, ["2", "3", "4", "5"])

    async def delete(client: Client) -> None:
        await Admin(client).delete_records({TopicPartition(topic, 0): 4})

    run_with_client(kafka.bootstrap_servers, delete)
    with pytest.raises(StreamingQueryException, match=f"{topic}-0"):
        run_to_end(stream(spark, strict), tmp_path)
    tolerant = {**strict, "failOnDataLoss": "false"}
    assert values(run_to_end(stream(spark, tolerant), tmp_path)) == ["4", "5"]


def test_what_is_available_now_is_taken_in_proportion_and_no_more(
    spark: SparkSession, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    from headpond.testing import Record

    kafka.create_topic(topic, partitions=2)
    kafka.produce(topic, [Record(f"{number}", partition=0 if number < 8 else 1) for number in range(12)])
    limited = given(kafka, subscribe=topic, maxOffsetsPerTrigger="6")
    running = Running(stream(spark, limited), tmp_path, availableNow=True)
    assert running.query.awaitTermination(QUERY_S_MAX)
    taken = [sorted(row["partition"] for row in rows) for _, rows in sorted(running.batches.items()) if rows]
    assert taken == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1]]
    assert sorted(int(value) for value in values(running.rows)) == list(range(12))


def given(kafka: Kafka, **more: str) -> dict[str, str]:
    return options_of(cast(Broker, kafka), startingOffsets="earliest", **more)


def wait_for_rows(running: Running, count: int) -> None:
    def are_there() -> Any:
        assert running.query.exception() is None, running.query.exception()
        return len(running.rows) >= count

    eventually(are_there, what=lambda: f"{count} rows; {len(running.rows)} came", deadline_s=QUERY_S_MAX)
    assert len(running.rows) == count
