"""``df.write.format("headpond")``: all of it or nothing, in the right partitions, and a rule for every odd row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from headpond.client import Client
from headpond.client.transaction_admin import Transactions
from headpond.testing import Broker
from spark.audit import committed, values
from spark.reads import batch, options_of
from support.internal_client import run_with_client

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HEADERS = "array<struct<key:string,value:binary>>"


def write(frame: DataFrame, broker: Broker, topic: str | None = None, *, mode: str = "append", **more: Any) -> None:
    named = {} if topic is None else {"topic": topic}
    given = {**options_of(broker), **named, **{name: str(value) for name, value in more.items()}}
    frame.write.format("headpond").options(**given).mode(mode).save()


def refusal(action: Callable[[], None]) -> str:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        action()
    return str(caught.value)


def numbers(spark: SparkSession, count: int, parts: int = 2) -> DataFrame:
    return spark.range(0, count, 1, parts).selectExpr("CAST(id AS STRING) AS value")


def left_open(broker: Broker) -> list[str]:
    async def ask(client: Client) -> list[str]:
        return [one.transactional_id for one in await Transactions(client).all() if one.state == "Ongoing"]

    return run_with_client(broker.bootstrap_servers, ask)


# --- what arrives -----------------------------------------------------------------------------------------------------


def test_every_column_becomes_its_part_of_the_record(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic, partitions=3)
    moment = datetime(2024, 2, 29, 12, 30, 0, 123_000, tzinfo=UTC)
    rows = [
        (bytearray(b"k"), bytearray(b"v"), 2, [("a", bytearray(b"1")), ("a", None)], moment),
        (None, None, 1, None, moment),
        (bytearray(b""), bytearray(b""), 0, [], moment),
    ]
    frame = spark.createDataFrame(
        rows, f"key binary, value binary, partition int, headers {HEADERS}, timestamp timestamp"
    )
    write(frame, spark_broker, topic)
    moment_ms = int(moment.timestamp() * 1_000)
    assert sorted(committed(spark_broker.bootstrap_servers, topic)) == [
        (0, b"", b"", None, moment_ms),
        (1, None, None, None, moment_ms),
        (2, b"k", b"v", [("a", b"1"), ("a", None)], moment_ms),
    ]


def test_text_is_written_in_utf_8_and_rows_without_a_time_get_the_present_one(
    spark: SparkSession, spark_broker: Broker, topic: str
) -> None:
    spark_broker.create_topic(topic)
    before_ms = int(datetime.now(UTC).timestamp() * 1_000)
    write(spark.createDataFrame([("schlüssel", "wert ü")], "key string, value string"), spark_broker, topic)
    (seen,) = committed(spark_broker.bootstrap_servers, topic)
    assert (seen.key, seen.value) == ("schlüssel".encode(), "wert ü".encode())
    assert before_ms <= seen.timestamp_ms <= datetime.now(UTC).timestamp() * 1_000


def test_what_was_read_from_a_topic_can_be_written_to_another(
    spark: SparkSession, spark_broker: Broker, topic: str
) -> None:
    spark_broker.create_topic(topic, partitions=3)
    spark_broker.create_topic(f"{topic}-copy", partitions=3)
    spark_broker.produce(topic, [f"{number}" for number in range(20)])
    frame = batch(spark, options_of(spark_broker, topic, includeHeaders="true"))
    write(frame, spark_broker, f"{topic}-copy")
    original, copy = (committed(spark_broker.bootstrap_servers, name) for name in (topic, f"{topic}-copy"))
    assert sorted(copy) == sorted(original)
    assert len(copy) == 20


def test_the_column_topic_says_where_each_row_goes_and_the_option_goes_before_it(
    spark: SparkSession, spark_broker: Broker, topic: str
) -> None:
    one, other, all_of_them = f"{topic}-1", f"{topic}-2", f"{topic}-3"
    for name in (one, other, all_of_them):
        spark_broker.create_topic(name, partitions=2)
    frame = spark.createDataFrame([(one, "a"), (other, "b"), (one, "c")], "topic string, value string")
    write(frame, spark_broker)
    write(frame, spark_broker, all_of_them)
    assert values(spark_broker.bootstrap_servers, one) == ["a", "c"]
    assert values(spark_broker.bootstrap_servers, other) == ["b"]
    assert values(spark_broker.bootstrap_servers, all_of_them) == ["a", "b", "c"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_key_lands_in_the_partition_that_other_clients_choose(
    spark: SparkSession, spark_broker: Broker, topic: str, codec: str
) -> None:
    ours, theirs = f"{topic}-ours", f"{topic}-theirs"
    for name in (ours, theirs):
        spark_broker.create_topic(name, partitions=7)
    keys = [f"key-{number}" for number in range(300)]
    producer = Producer({"bootstrap.servers": spark_broker.bootstrap_servers, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(theirs, "x", key)
    assert producer.flush(30) == 0
    frame = spark.createDataFrame([(key, "x") for key in keys], "key string, value string")
    write(frame, spark_broker, ours, **{"kafka.compression.type": codec})
    places = [
        sorted((seen.key, seen.partition) for seen in committed(spark_broker.bootstrap_servers, name))
        for name in (ours, theirs)
    ]
    assert places[0] == places[1]


def test_rows_without_a_key_are_spread_over_the_partitions_by_task(
    spark: SparkSession, spark_broker: Broker, topic: str
) -> None:
    spark_broker.create_topic(topic, partitions=4)
    write(numbers(spark, 40, parts=4), spark_broker, topic)
    seen = committed(spark_broker.bootstrap_servers, topic)
    assert {one.partition for one in seen} == {0, 1, 2, 3}
    assert len(seen) == 40


def test_rows_of_one_task_stay_in_their_order_in_a_partition(
    spark: SparkSession, spark_broker: Broker, topic: str
) -> None:
    spark_broker.create_topic(topic, partitions=3, max_message_bytes=2_000)
    frame = spark.range(0, 5_000, 1, 1).selectExpr("CAST(id % 50 AS STRING) AS key", "CAST(id AS STRING) AS value")
    write(frame, spark_broker, topic)
    seen = committed(spark_broker.bootstrap_servers, topic)
    assert len(seen) == 5_000
    for partition in range(3):
        order = [int(one.value or b"") for one in seen if one.partition == partition]
        assert order == sorted(order)


def test_a_frame_without_rows_writes_nothing(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic)
    write(numbers(spark, 10).where("value = 'x'"), spark_broker, topic)
    assert committed(spark_broker.bootstrap_servers, topic) == []


# --- all or nothing ---------------------------------------------------------------------------------------------------


def test_a_write_that_fails_in_a_task_writes_nothing_and_leaves_nothing(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.create_topic(topic, partitions=2)
    frame = spark.range(0, 20_000, 1, 4).selectExpr(
        "CAST(id AS STRING) AS value", "IF(id = 19999, 9, CAST(NULL AS INT)) AS partition"
    )
    said = refusal(lambda: write(frame, spark_broker, topic, stagingDir=tmp_path))
    assert "row 4999 of partition 3 of the DataFrame has the partition 9, and topic" in said
    assert committed(spark_broker.bootstrap_servers, topic) == []
    assert left_open(spark_broker) == []
    assert not list(tmp_path.rglob("*.batches"))


def test_a_write_leaves_nothing_in_the_staging_folder(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.create_topic(topic)
    write(numbers(spark, 10), spark_broker, topic, stagingDir=tmp_path)
    write(numbers(spark, 10), spark_broker, topic, stagingDir=tmp_path, txnAppId="app/1", txnVersion=1)
    assert len(committed(spark_broker.bootstrap_servers, topic)) == 20
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_write_with_a_version_is_done_once(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic, partitions=2)
    frame = numbers(spark, 100)
    for version in (1, 1, 2, 1):
        write(frame, spark_broker, topic, txnAppId=topic, txnVersion=version)
    assert len(committed(spark_broker.bootstrap_servers, topic)) == 200
    said = refusal(lambda: write(numbers(spark, 7), spark_broker, topic, txnAppId=topic, txnVersion=2))
    assert f"nothing was written: version 2 of {topic}/{topic} was written before with 100 rows and has 7 now" in said
    write(frame, spark_broker, topic)
    write(frame, spark_broker, topic)
    assert len(committed(spark_broker.bootstrap_servers, topic)) == 400


def test_straight_from_the_tasks_everything_arrives(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.create_topic(topic, partitions=3)
    frame = spark.range(0, 3_000, 1, 2).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    write(frame, spark_broker, topic, delivery="at-least-once", compression="lz4", stagingDir=tmp_path)
    assert values(spark_broker.bootstrap_servers, topic) == sorted(map(str, range(3_000)))
    assert not list(tmp_path.iterdir())


# --- odd rows, odd columns --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize(
    ("row", "schema", "said"),
    [
        ((None, "x"), "topic string, value string", "has no topic: its column topic is null"),
        (("", "x"), "topic string, value string", "has an empty topic"),
        ((-1, "x"), "partition int, value string", "has the partition -1: partitions count from 0"),
        ((2, "x"), "partition int, value string", "has the partition 2, and topic"),
        ((2_000, "x" * 2_000), "partition int, value string", "has the partition 2000"),
        ((0, "x" * 2_000), "partition int, value string", "and topic TOPIC takes at most 1000 (max.message.bytes)"),
        (([(None, None)], "x"), f"headers {HEADERS}, value string", "has a header without a name"),
    ],
)
def test_a_row_that_cant_be_written_is_named(
    spark: SparkSession, spark_broker: Broker, topic: str, row: Any, schema: str, said: str, delivery: str
) -> None:
    spark_broker.create_topic(topic, partitions=2, max_message_bytes=1_000)
    frame = spark.createDataFrame([row], schema).coalesce(1)
    named = None if schema.startswith("topic") else topic
    found = refusal(lambda: write(frame, spark_broker, named, delivery=delivery))
    assert "row 0 of partition 0 of the DataFrame" in found
    assert said.replace("TOPIC", topic) in found
    assert "xxx" not in found
    assert committed(spark_broker.bootstrap_servers, topic) == []


def test_a_record_as_large_as_the_topic_allows_is_written(
    spark: SparkSession, spark_broker: Broker, topic: str
) -> None:
    limit = 3_000_000
    spark_broker.create_topic(topic, max_message_bytes=limit)
    fixed = (
        61 + 4 + 1 + 1 + 1 + 1 + 4 + 1
    )  # the batch, and the record's length, attributes, deltas, key, value, headers
    sizes = [limit - fixed, 10]
    write(spark.createDataFrame([("x" * size,) for size in sizes], "value string").coalesce(1), spark_broker, topic)
    assert [len(one.value or b"") for one in committed(spark_broker.bootstrap_servers, topic)] == sizes
    too_large = spark.createDataFrame([("x" * (limit - fixed + 1),)], "value string")
    assert f"takes at most {limit} (max.message.bytes)" in refusal(lambda: write(too_large, spark_broker, topic))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("'x' AS key", "there is no column value"),
        (
            "'x' AS value, 1 AS kee",
            "a record has no kee: the columns are value, key, topic, partition, headers, timestamp (did you mean key?)",
        ),
        ("'x' AS value, 1 AS key", "column key is int; it has to be string or binary: cast it"),
        ("id AS value", "column value is bigint; it has to be string or binary: cast it"),
        ("'x' AS value, id AS partition", "column partition is bigint; it has to be int: cast it"),
        ("'x' AS value, map('a', 'b') AS headers", "column headers is map<string,string>"),
        ("'x' AS value, current_date() AS timestamp", "column timestamp is date; it has to be timestamp: cast it"),
    ],
)
def test_columns_that_no_record_has_are_refused(
    spark: SparkSession, spark_broker: Broker, topic: str, columns: str, said: str
) -> None:
    assert said in refusal(lambda: write(spark.range(1).selectExpr(*columns.split(", ", 1)), spark_broker, topic))


def test_a_write_without_a_topic_is_refused(spark: SparkSession, spark_broker: Broker) -> None:
    assert "where to? Give the option topic, or a column topic" in refusal(
        lambda: write(numbers(spark, 1), spark_broker)
    )


def test_a_topic_that_does_not_exist_is_not_made(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic)
    said = refusal(lambda: write(numbers(spark, 1), spark_broker, f"{topic}x"))
    assert f"topic '{topic}x' does not exist (did you mean {topic}?)" in said


def test_overwriting_is_refused(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic)
    said = refusal(lambda: write(numbers(spark, 1), spark_broker, topic, mode="overwrite"))
    assert 'mode("overwrite") would replace what a topic holds, and a topic only grows: use mode("append")' in said


def test_a_staged_file_that_the_driver_does_not_find_is_found_missing_before_anything_is_written(
    tmp_path: Path,
) -> None:
    pytest.importorskip("pyarrow")
    from headpond.spark.sink.staging import Folder, StagedFile

    missing = StagedFile(str(tmp_path / "q" / "0-0-a.batches"), 1, 0, ())
    assert Folder(str(tmp_path), "q").check([missing]) is missing


def test_no_broker_is_one_sentence_and_no_secret_is_in_it(spark: SparkSession) -> None:
    given = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "topic": "t",
        "kafka.max.block.ms": "300",
        "kafka.ssl.key.password": "hush",
    }
    frame = numbers(spark, 1)
    said = refusal(lambda: frame.write.format("headpond").options(**given).mode("append").save())
    assert "no broker of kafka.bootstrap.servers (127.0.0.1:1) answers" in said
    assert "hush" not in said
