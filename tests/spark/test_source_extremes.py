"""Topics at the edges of what there is: records of ten megabytes, and thousands of batches of one record."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from headpond.testing import Broker
from spark.reads import options_of

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from headpond.spark.reading.options import parse_options
from headpond.spark.source.batch import BatchReader

LARGE_BYTES = 10_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def produce(broker: Broker, topic: str, values: list[bytes], **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.max.bytes": 64_000_000, **settings})
    for value in values:
        producer.produce(topic, value, headers=[("size", value[-3:])])
    assert producer.flush(60) == 0


def read(broker: Broker, topic: str, **options: str) -> list[tuple[int, bytes]]:
    """(offset, value), as the tasks of a batch read give them to Spark."""
    reader = BatchReader(parse_options(options_of(broker, topic, **options), is_stream=False), ("offset", "value"))
    return [
        (offset, value)
        for part in reader.partitions()
        for rows in reader.read(part)
        for offset, value in zip(*(rows.column(name).to_pylist() for name in ("offset", "value")), strict=True)
    ]


def test_records_that_are_larger_than_a_fetch_and_its_buffer_are_read(spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic, max_message_bytes=64_000_000)
    sent = []
    for codec in CODECS:
        some = [b"small", codec.encode() * (LARGE_BYTES // len(codec))]
        produce(spark_broker, topic, some, **{"compression.type": codec})
        sent += some
    produce(spark_broker, topic, [bytes(3 * LARGE_BYTES)])
    sent.append(bytes(3 * LARGE_BYTES))
    assert read(spark_broker, topic) == list(enumerate(sent))
    assert read(spark_broker, topic, maxRecordsPerPartition="3") == list(enumerate(sent))


def test_thousands_of_batches_of_one_record_are_read(spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic)
    sent = [b"%d" % number for number in range(10_000)]
    produce(spark_broker, topic, sent, **{"batch.num.messages": 1})
    assert read(spark_broker, topic) == list(enumerate(sent))
