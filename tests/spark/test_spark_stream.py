"""``spark.readStream.format("headpond")`` in Spark itself: triggers, checkpoints, and a broker that comes and goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headpond.client import Client
from headpond.client.admin import Admin
from headpond.client.group_admin import Groups
from headpond.model import TopicPartition
from headpond.testing import Broker, Record
from spark.reads import QUERY_S_MAX, Running, options_of, run_to_end, stream, values
from support.internal_client import run_with_client
from support.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_query_goes_on_where_its_checkpoint_ends(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [Record(f"{number}", partition=number % 2) for number in range(6)])
    given = options_of(spark_broker, topic, startingOffsets="earliest")
    assert values(run_to_end(stream(spark, given), tmp_path)) == list("012345")
    assert run_to_end(stream(spark, given), tmp_path) == []
    spark_broker.produce(topic, ["6", "7"])
    assert values(run_to_end(stream(spark, given), tmp_path)) == ["6", "7"]


def test_the_offset_log_holds_the_connectors_json(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, ["a", "b"])
    run_to_end(stream(spark, options_of(spark_broker, topic, startingOffsets="earliest")), tmp_path)
    last = sorted((tmp_path / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))[-1]
    offset = json.loads(last.read_text().splitlines()[-1])
    assert offset[topic] == {"0": 2}
    assert {name: parts for name, parts in offset.items() if parts} == {topic: {"0": 2}}


def test_a_batch_that_was_logged_but_not_committed_is_done_again_from_the_same_start(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, ["old"])
    given = options_of(spark_broker, topic)
    assert run_to_end(stream(spark, given), tmp_path) == []
    for left in (tmp_path / "commits").iterdir():
        left.unlink()
    spark_broker.produce(topic, ["new"])
    assert values(run_to_end(stream(spark, given), tmp_path)) == ["new"]


def test_a_query_survives_the_kill_of_its_broker(spark: SparkSession, topic: str, tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic(topic, partitions=2)
        given = options_of(broker, topic, startingOffsets="earliest")
        running = Running(stream(spark, given), tmp_path, processingTime="0 seconds")
        try:
            sent: list[str] = []
            for life in range(3):
                more = [f"{life}/{number:03}" for number in range(50)]
                broker.produce(topic, more)
                sent += more
                eventually(
                    lambda: len(running.rows) == len(sent) or running.query.exception(),  # noqa: B023
                    what=lambda: f"{len(sent)} rows; {len(running.rows)} came",  # noqa: B023
                    deadline_s=QUERY_S_MAX,
                )
                broker.restart(kill=True)
            assert running.query.exception() is None
            assert values(running.rows) == sorted(sent)
        finally:
            running.query.stop()


def test_a_group_shows_how_far_a_query_is(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, ["a", "b", "c"])
    group = f"group-{topic}"
    given = options_of(spark_broker, topic, startingOffsets="earliest", **{"kafka.group.id": group})
    run_to_end(stream(spark, given), tmp_path)

    async def ask(client: Client) -> int:
        return (await Groups(client).offsets(group))[TopicPartition(topic, 0)].offset

    assert run_with_client(spark_broker.bootstrap_servers, ask) == 3


def test_progress_tells_start_end_and_latest(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, [f"{number}" for number in range(5)])
    given = options_of(spark_broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger="2")
    running = Running(stream(spark, given), tmp_path, availableNow=True)
    assert running.query.awaitTermination(QUERY_S_MAX)
    assert [len(rows) for _, rows in sorted(running.batches.items()) if rows] == [2, 2, 1]
    with_rows = [one for one in running.query.recentProgress if one["numInputRows"]]
    source = with_rows[0]["sources"][0]
    assert json.loads(source["startOffset"])[topic] == {"0": 0}
    assert json.loads(source["endOffset"])[topic] == {"0": 2}
    assert json.loads(source["latestOffset"])[topic] == {"0": 5}


def test_one_batch_only_reads_everything(spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path) -> None:
    spark_broker.produce(topic, ["a", "b"])
    given = options_of(spark_broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger="1")
    assert values(run_to_end(stream(spark, given), tmp_path, once=True)) == ["a", "b"]
    spark_broker.produce(topic, ["c"])
    assert values(run_to_end(stream(spark, given), tmp_path, once=True)) == ["c"]


def test_a_topic_that_was_created_again_fails_the_query_or_is_read_anew(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    spark_broker.produce(topic, ["a"])
    given = options_of(spark_broker, topic, startingOffsets="earliest")
    run_to_end(stream(spark, given), tmp_path)

    async def delete(client: Client) -> None:
        await Admin(client).delete_topics([topic])

    run_with_client(spark_broker.bootstrap_servers, delete)
    spark_broker.produce(topic, ["x", "y", "z"])
    with pytest.raises(StreamingQueryException, match=f"topic {topic} was deleted and created again"):
        run_to_end(stream(spark, given), tmp_path)
    tolerant = {**given, "failOnDataLoss": "false"}
    assert values(run_to_end(stream(spark, tolerant), tmp_path)) == ["x", "y", "z"]


def test_a_checkpoint_of_sparks_own_connector_is_gone_on_with(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, ["a", "b"])
    given = options_of(spark_broker, topic, startingOffsets="earliest")
    run_to_end(stream(spark, given), tmp_path)
    make_the_connectors(tmp_path)
    spark_broker.produce(topic, ["c"])
    assert values(run_to_end(stream(spark, given), tmp_path)) == ["c"]


def test_a_first_batch_that_sparks_own_connector_did_not_finish_is_refused(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    spark_broker.produce(topic, ["a", "b"])
    given = options_of(spark_broker, topic, startingOffsets="earliest")
    run_to_end(stream(spark, given), tmp_path, once=True)
    make_the_connectors(tmp_path)
    for left in (tmp_path / "commits").iterdir():
        left.unlink()
    with pytest.raises(StreamingQueryException, match=r'finish it with format\("kafka"\)'):
        run_to_end(stream(spark, given), tmp_path)


def make_the_connectors(checkpoint: Path) -> None:
    """Offsets as the connector writes them. (``tests/interop`` has checkpoints that it has made.)"""
    for log in (checkpoint / "offsets").glob("[0-9]*"):
        lines = log.read_text().splitlines()
        offset = {name: parts for name, parts in json.loads(lines[-1]).items() if parts}
        log.write_text("\n".join([*lines[:-1], json.dumps(offset, separators=(",", ":"))]))
    for checksum in (checkpoint / "offsets").glob(".*.crc"):
        checksum.unlink()


def test_a_continuous_trigger_is_refused(spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    spark_broker.create_topic(topic)
    frame = stream(spark, options_of(spark_broker, topic))
    with pytest.raises(PySparkException, match=r"(?i)continuous"):
        frame.writeStream.format("console").option("checkpointLocation", str(tmp_path)).trigger(
            continuous="1 second"
        ).start().awaitTermination(QUERY_S_MAX)


def test_a_stream_that_is_given_an_end_is_refused(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    spark_broker.create_topic(topic)
    with pytest.raises(StreamingQueryException, match="endingOffsets: a stream has no end"):
        run_to_end(stream(spark, options_of(spark_broker, topic, endingOffsets="latest")), tmp_path)
