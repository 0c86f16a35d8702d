"""``spark.read.format("headpond")`` against a broker: what is in a topic is what Spark sees, no more and no less."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from headpond.client import Client
from headpond.client.admin import Admin
from headpond.model import TopicPartition
from headpond.testing import Broker, Record
from spark.reads import batch, options_of, values
from support.internal_client import run_with_client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def error_of(frame: Any) -> str:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        frame().collect()
    return str(caught.value)


def test_a_topic_is_found_by_name_and_has_the_connectors_columns(
    spark: SparkSession, spark_broker: Broker, topic: str
) -> None:
    spark_broker.create_topic(topic)
    frame = batch(spark, options_of(spark_broker, topic))
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema.fields] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
    ]
    assert frame.collect() == []


def test_every_part_of_a_record_arrives(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic, partitions=2)
    time_ms = 1_700_000_000_123
    spark_broker.produce(
        topic,
        [
            Record("apple", "a", {"colour": "red", "size": None}, time_ms, 1),
            Record(None, "gone", (), time_ms + 1, 1),
            Record("", None, (), time_ms + 2, 0),
        ],
    )
    given = options_of(spark_broker, topic, includeHeaders="true")
    rows = batch(spark, given).orderBy("partition", "offset").collect()
    found = [(row.key, row.value, row.topic, row.partition, row.offset, row.timestampType) for row in rows]
    assert found == [
        (None, b"", topic, 0, 0, 0),
        (b"a", b"apple", topic, 1, 0, 0),
        (b"gone", None, topic, 1, 1, 0),
    ]
    assert [row.headers and [tuple(one) for one in row.headers] for row in rows] == [
        None,  # as in the connector
        [("colour", b"red"), ("size", None)],
        None,
    ]
    stamped = batch(spark, given).where("value = 'apple'").selectExpr("unix_millis(timestamp) AS ms").collect()
    assert [row.ms for row in stamped] == [time_ms]


def test_the_brokers_time_is_told_as_such(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic, message_timestamp_type="LogAppendTime")
    spark_broker.produce(topic, [Record("x", timestamp_ms=5)])
    (row,) = batch(spark, options_of(spark_broker, topic)).collect()
    assert row.timestampType == 1
    assert row.timestamp.year >= datetime.now(UTC).year - 1


@pytest.mark.parametrize("codec", CODECS)
def test_every_compression_is_read(spark: SparkSession, spark_broker: Broker, topic: str, codec: str) -> None:
    from confluent_kafka import Producer

    spark_broker.create_topic(topic)
    producer = Producer(
        {"bootstrap.servers": spark_broker.bootstrap_servers, "compression.type": codec, "linger.ms": 20}
    )
    sent = [f"{codec} {number} " + "x" * (number % 50) for number in range(500)]
    for text in sent:
        producer.produce(topic, text, headers={"h": text})
    assert producer.flush(30) == 0
    rows = batch(spark, options_of(spark_broker, topic, includeHeaders="true")).orderBy("offset").collect()
    assert [bytes(row.value).decode() for row in rows] == sent
    assert [bytes(row.headers[0].value).decode() for row in rows] == sent


def test_a_schema_of_the_users_prunes_columns(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(topic, ["a", "b"])
    frame = batch(spark, options_of(spark_broker, topic), "offset bigint, value binary")
    assert [tuple(row) for row in frame.orderBy("offset").collect()] == [(0, b"a"), (1, b"b")]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("valeu binary", "a topic has no column valeu"),
        ("value string", "column value is binary, not string: cast it after reading"),
        ("headers array<struct<key:string,value:binary>>", "it comes with the option includeHeaders"),
    ],
)
def test_a_schema_that_no_topic_has_is_refused(
    spark: SparkSession, spark_broker: Broker, topic: str, schema: str, said: str
) -> None:
    spark_broker.create_topic(topic)
    assert said in error_of(lambda: batch(spark, options_of(spark_broker, topic), schema))


def test_offsets_and_times_bound_what_is_read(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic)
    spark_broker.produce(topic, [Record(f"{number}", timestamp_ms=1_000 * (number + 1)) for number in range(6)])

    def read(**more: str) -> list[str]:
        return values(batch(spark, options_of(spark_broker, topic, **more)).collect())

    assert read(startingOffsets=f'{{"{topic}": {{"0": 2}}}}', endingOffsets=f'{{"{topic}": {{"0": 4}}}}') == ["2", "3"]
    assert read(startingOffsets=f'{{"{topic}": {{"0": -2}}}}', endingOffsets=f'{{"{topic}": {{"0": -1}}}}') == list(
        "012345"
    )
    assert read(startingTimestamp="3000", endingTimestamp="5000") == ["2", "3"]
    assert read(startingTimestamp="3001", endingTimestamp="99000") == ["3", "4", "5"]
    by_time = f'{{"{topic}": {{"0": 2000}}}}'
    assert read(startingOffsetsByTimestamp=by_time, endingOffsetsByTimestamp=by_time) == []
    assert read(startingTimestamp="99000", startingOffsetsByTimestampStrategy="latest") == []
    said = error_of(lambda: batch(spark, options_of(spark_broker, topic, startingTimestamp="99000")))
    assert f"{topic}-0 has no record at or after 99000" in said


def test_patterns_and_assignments_choose(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    for name in (f"{topic}-a", f"{topic}-b", f"other-{topic}"):
        spark_broker.create_topic(name, partitions=2)
        spark_broker.produce(name, [Record(f"{name}/{number}", partition=number) for number in range(2)])
    by_pattern = batch(spark, options_of(spark_broker, subscribePattern=f"{topic}-.*")).collect()
    assert values(by_pattern) == [f"{topic}-a/0", f"{topic}-a/1", f"{topic}-b/0", f"{topic}-b/1"]
    assigned = batch(spark, options_of(spark_broker, assign=f'{{"{topic}-a": [1], "{topic}-b": [0]}}')).collect()
    assert values(assigned) == [f"{topic}-a/1", f"{topic}-b/0"]
    both = batch(spark, options_of(spark_broker, subscribe=f"{topic}-a,{topic}-b")).collect()
    assert len(both) == 4


def test_aborted_transactions_are_invisible_unless_asked_for(
    spark: SparkSession, spark_broker: Broker, topic: str
) -> None:
    from confluent_kafka import Producer

    spark_broker.create_topic(topic)
    producer = Producer({"bootstrap.servers": spark_broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    for number, is_kept in enumerate((True, False, True, False)):
        producer.begin_transaction()
        for letter in "xy":
            producer.produce(topic, f"{number}{letter}")
        if is_kept:
            producer.commit_transaction(30)
        else:
            producer.flush(30)
            producer.abort_transaction(30)
    given = options_of(spark_broker, topic)
    assert values(batch(spark, given).collect()) == ["0x", "0y", "2x", "2y"]
    everything = batch(spark, {**given, "kafka.isolation.level": "read_uncommitted"}).collect()
    assert len(everything) == 8
    in_parts = batch(spark, {**given, "maxRecordsPerPartition": "1"}).collect()
    assert values(in_parts) == ["0x", "0y", "2x", "2y"]


def test_an_open_transaction_hides_what_lies_behind_it(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    from confluent_kafka import Producer

    spark_broker.create_topic(topic)
    spark_broker.produce(topic, ["before"])
    producer = Producer({"bootstrap.servers": spark_broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "undecided")
    producer.flush(30)
    spark_broker.produce(topic, ["after"])
    given = options_of(spark_broker, topic)
    assert values(batch(spark, given).collect()) == ["before"]
    producer.commit_transaction(30)
    assert values(batch(spark, given).collect()) == ["after", "before", "undecided"]


def test_splits_make_more_tasks_and_lose_nothing(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [Record(f"{number:03}", partition=number % 2) for number in range(100)])
    by_size = batch(spark, options_of(spark_broker, topic, maxRecordsPerPartition="10"))
    by_count = batch(spark, options_of(spark_broker, topic, minPartitions="5"))
    assert (by_size.rdd.getNumPartitions(), by_count.rdd.getNumPartitions()) == (10, 6)
    assert values(by_size.collect()) == values(by_count.collect()) == [f"{number:03}" for number in range(100)]


def test_records_that_were_deleted_fail_the_read_or_are_left_out(
    spark: SparkSession, spark_broker: Broker, topic: str
) -> None:
    spark_broker.create_topic(topic)
    spark_broker.produce(topic, [f"{number}" for number in range(6)])

    async def delete(client: Client) -> None:
        await Admin(client).delete_records({TopicPartition(topic, 0): 4})

    run_with_client(spark_broker.bootstrap_servers, delete)
    given = options_of(spark_broker, topic, startingOffsets=f'{{"{topic}": {{"0": 1}}}}')
    said = error_of(lambda: batch(spark, given))
    assert f"startingOffsets of {topic}-0 is 1, and the log begins at 4" in said
    assert values(batch(spark, {**given, "failOnDataLoss": "false"}).collect()) == ["4", "5"]
    beyond = {**options_of(spark_broker, topic), "endingOffsets": f'{{"{topic}": {{"0": 9}}}}'}
    assert "and the log ends at 6" in error_of(lambda: batch(spark, beyond))
    assert values(batch(spark, {**beyond, "failOnDataLoss": "false"}).collect()) == ["4", "5"]


def test_what_is_missing_is_told_in_one_sentence(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic)
    said = error_of(lambda: batch(spark, options_of(spark_broker, topic[:-1])))
    assert f"topic {topic[:-1]} does not exist (did you mean {topic}?)" in said
    absent = error_of(lambda: batch(spark, options_of(spark_broker, assign=f'{{"{topic}": [7]}}')))
    assert f"assign: there is no {topic}-7" in absent
    nobody = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": topic, "kafka.default.api.timeout.ms": "300"}
    assert "no broker of kafka.bootstrap.servers (127.0.0.1:1) answers" in error_of(lambda: batch(spark, nobody))
    assert "did you mean startingOffsets?" in error_of(
        lambda: batch(spark, options_of(spark_broker, topic, startingOffset="x"))
    )


def test_sql_reads_a_topic_too_and_plans_show_no_secret(
    spark: SparkSession, spark_broker: Broker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spark_broker.produce(topic, ["a", "b"])
    secret = "hunter2-and-more"
    servers = spark_broker.bootstrap_servers
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW fruit USING headpond OPTIONS (`kafka.bootstrap.servers` '{servers}', "
        f"subscribe '{topic}', `kafka.ssl.key.password` '{secret}')"
    )
    rows = spark.sql("SELECT CAST(value AS STRING) AS text FROM fruit ORDER BY text").collect()
    assert [row.text for row in rows] == ["a", "b"]
    spark.table("fruit").explain(extended=True)
    assert secret not in capsys.readouterr().out


def test_the_source_can_be_registered_by_hand(spark: SparkSession, spark_broker: Broker, topic: str) -> None:
    from headpond.spark.data_source import HeadpondDataSource

    other = spark.newSession()
    other.dataSource.register(HeadpondDataSource)
    spark_broker.produce(topic, ["x"])
    assert values(batch(other, options_of(spark_broker, topic)).collect()) == ["x"]
