"""``df.writeStream.format("headpond")`` in Spark itself: once, whatever a restart finds; refusals in one sentence."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headpond.testing import Broker, Record
from spark.audit import committed, values
from spark.reads import QUERY_S_MAX, options_of, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def target(spark_broker: Broker, topic: str) -> str:
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.create_topic(f"{topic}-out", partitions=3)
    return f"{topic}-out"


def feed(broker: Broker, topic: str, start: int, end: int) -> None:
    broker.produce(topic, [Record(f"{number}", f"{number}", partition=number % 2) for number in range(start, end)])


def source(spark: SparkSession, broker: Broker, topic: str, **more: str) -> DataFrame:
    return stream(spark, options_of(broker, topic, startingOffsets="earliest", **more)).select("key", "value")


def run(frame: DataFrame, broker: Broker, target: str, checkpoint: Path, mode: str = "append", **more: Any) -> None:
    writer = frame.writeStream.format("headpond").outputMode(mode).trigger(availableNow=True)
    given = {**options_of(broker), "topic": target, "checkpointLocation": str(checkpoint), **more}
    query = writer.options(**given).start()
    try:
        assert query.awaitTermination(QUERY_S_MAX), "the query did not end"
    finally:
        query.stop()


def refusal(frame: DataFrame, broker: Broker, target: str, checkpoint: Path, **more: Any) -> str:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        run(frame, broker, target, checkpoint, **more)
    return str(caught.value)


def expected(count: int) -> list[str]:
    return sorted(map(str, range(count)))


def test_a_stream_is_copied_once_and_goes_on_where_it_ended(
    spark: SparkSession, spark_broker: Broker, topic: str, target: str, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    frame = source(spark, spark_broker, topic, maxOffsetsPerTrigger="30")
    feed(spark_broker, topic, 0, 100)
    run(frame, spark_broker, target, checkpoint)
    assert values(spark_broker.bootstrap_servers, target) == expected(100)
    feed(spark_broker, topic, 100, 150)
    run(frame, spark_broker, target, checkpoint)
    run(frame, spark_broker, target, checkpoint)
    assert values(spark_broker.bootstrap_servers, target) == expected(150)
    assert (tmp_path / "checkpoint-staging").is_dir()
    assert not list(tmp_path.rglob("*.batches"))


def test_a_micro_batch_that_spark_does_again_is_not_written_again(
    spark: SparkSession, spark_broker: Broker, topic: str, target: str, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    frame = source(spark, spark_broker, topic)
    feed(spark_broker, topic, 0, 50)
    run(frame, spark_broker, target, checkpoint)
    for entry in (checkpoint / "commits").iterdir():  # as if the driver had died before it wrote them
        entry.unlink()
    feed(spark_broker, topic, 50, 60)
    run(frame, spark_broker, target, checkpoint)
    assert values(spark_broker.bootstrap_servers, target) == expected(60)


def test_a_checkpoint_that_was_set_back_fails_the_query_and_writes_nothing(
    spark: SparkSession, spark_broker: Broker, topic: str, target: str, tmp_path: Path
) -> None:
    checkpoint, older = tmp_path / "checkpoint", tmp_path / "older"
    frame = source(spark, spark_broker, topic)
    feed(spark_broker, topic, 0, 10)
    run(frame, spark_broker, target, checkpoint)
    shutil.copytree(checkpoint, older)
    for end in (20, 30):
        feed(spark_broker, topic, end - 10, end)
        run(frame, spark_broker, target, checkpoint)
    said = refusal(frame, spark_broker, target, older)
    assert "so its checkpoint was set back, or another run uses it, too; use the newest checkpoint, or a new" in said
    assert values(spark_broker.bootstrap_servers, target) == expected(30)
    # The last micro-batch alone, planned anew, holds more rows than it did.
    last = max(int(entry.name) for entry in (checkpoint / "offsets").iterdir() if entry.name.isdigit())
    for log in ("offsets", "commits"):
        for name in (f"{last}", f".{last}.crc"):
            (checkpoint / log / name).unlink(missing_ok=True)
    feed(spark_broker, topic, 30, 35)
    said = refusal(frame, spark_broker, target, checkpoint)
    assert "was written before with 10 rows and has 15 now; its checkpoint was changed" in said
    assert values(spark_broker.bootstrap_servers, target) == expected(30)


def test_versions_make_foreach_batch_exactly_once(
    spark: SparkSession, spark_broker: Broker, topic: str, target: str, tmp_path: Path
) -> None:
    def write(frame: DataFrame, batch_id: int) -> None:
        given = {**options_of(spark_broker), "topic": target, "txnAppId": topic, "txnVersion": str(batch_id)}
        for _ in range(2):
            frame.write.format("headpond").options(**given).mode("append").save()

    feed(spark_broker, topic, 0, 40)
    frame = source(spark, spark_broker, topic, maxOffsetsPerTrigger="15")
    query = (
        frame.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(QUERY_S_MAX)
    assert values(spark_broker.bootstrap_servers, target) == expected(40)


def test_complete_results_are_refused(
    spark: SparkSession, spark_broker: Broker, topic: str, target: str, tmp_path: Path
) -> None:
    feed(spark_broker, topic, 0, 10)
    counts = source(spark, spark_broker, topic).groupBy("key").count()
    frame = counts.selectExpr("key", "CAST(count AS STRING) AS value")
    said = refusal(frame, spark_broker, target, tmp_path / "complete", mode="complete")
    assert 'outputMode("complete") would replace what a topic holds, and a topic only grows' in said
    # Spark has it for sinks in Java only; in foreachBatch it works.
    assert "does not support Update mode" in refusal(frame, spark_broker, target, tmp_path / "update", mode="update")
    assert committed(spark_broker.bootstrap_servers, target) == []


def test_straight_from_the_tasks_a_stream_arrives_too(
    spark: SparkSession, spark_broker: Broker, topic: str, target: str, tmp_path: Path
) -> None:
    feed(spark_broker, topic, 0, 20)
    frame = source(spark, spark_broker, topic)
    run(frame, spark_broker, target, tmp_path / "checkpoint", delivery="at-least-once")
    assert values(spark_broker.bootstrap_servers, target) == expected(20)
    assert not (tmp_path / "checkpoint-staging").exists()


def test_what_is_wrong_with_a_stream_is_said_and_nothing_is_written(
    spark: SparkSession, spark_broker: Broker, topic: str, target: str, tmp_path: Path
) -> None:
    feed(spark_broker, topic, 0, 5)
    frame = source(spark, spark_broker, topic)
    said = refusal(frame, spark_broker, target, tmp_path / "1", txnAppId="a", txnVersion="1")
    assert "txnAppId: a stream has its query id and batch ids instead" in said
    said = refusal(frame.selectExpr("key AS kee", "value"), spark_broker, target, tmp_path / "2")
    assert "a record has no kee" in said
    said = refusal(frame.selectExpr("*", "9 AS partition"), spark_broker, target, tmp_path / "3")
    assert "has the partition 9, and topic" in said
    assert committed(spark_broker.bootstrap_servers, target) == []


def test_a_stream_without_a_checkpoint_of_its_own_stages_among_temporary_files(
    spark: SparkSession, spark_broker: Broker, topic: str, target: str, tmp_path: Path
) -> None:
    feed(spark_broker, topic, 0, 5)
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path))
    try:
        given = {**options_of(spark_broker), "topic": target}
        frame = source(spark, spark_broker, topic)
        query = frame.writeStream.format("headpond").options(**given).trigger(availableNow=True).start()
        assert query.awaitTermination(QUERY_S_MAX)
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert values(spark_broker.bootstrap_servers, target) == expected(5)
