"""How a task reads its range: the client's reader lives on a thread of its own, and is touched on that one only."""

from __future__ import annotations

import asyncio

import pytest

from headpond.client.consumer import Reader
from headpond.model import TopicPartition
from headpond.testing import Broker
from spark.reads import options_of

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from headpond.spark.reading.options import parse_options
from headpond.spark.reading.planning import OffsetRange
from headpond.spark.reading.range_reader import read_range


def test_where_the_reader_stands_is_asked_on_its_own_thread(
    spark_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another thread the answer may be of the middle of a change, or none at all."""
    asked: list[TopicPartition] = []
    position = Reader.position

    def on_the_loop(reader: Reader, tp: TopicPartition) -> int:
        asyncio.get_running_loop()  # raises elsewhere
        asked.append(tp)
        return position(reader, tp)

    monkeypatch.setattr(Reader, "position", on_the_loop)
    spark_broker.produce(topic, ["a", "b", "c"])
    options = parse_options(options_of(spark_broker, topic), is_stream=False)
    wanted = OffsetRange(TopicPartition(topic, 0), 0, 3)
    batches = list(read_range(options, wanted, None, ["value"]))
    assert [value for batch in batches for value in batch.column("value").to_pylist()] == [b"a", b"b", b"c"]
    assert asked
