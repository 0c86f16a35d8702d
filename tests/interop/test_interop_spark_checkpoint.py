"""A query of ours on a checkpoint that Spark's own connector has made, as one has who changes the format."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from headpond.client import Client
from headpond.client.admin import Admin
from headpond.testing import Broker, Record
from interop.connector import Connector
from support.internal_client import run_with_client

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headpond.spark.session import start_session
from spark.reads import options_of, run_to_end, stream, values

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def spark(connector: Connector) -> Iterator[SparkSession]:
    session = start_session("headpond-interop", master="local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    """With three records, which the connector reads."""
    name = f"checkpoint-{uuid.uuid4().hex[:12]}"
    broker.create_topic(name)
    broker.produce(name, ["a", "b", "c"])
    return name


def read_by_connector(connector: Connector, broker: Broker, topic: str, checkpoint: Path) -> list[str]:
    batches = connector.stream(broker.bootstrap_servers, checkpoint, subscribe=topic, startingOffsets="earliest")
    return sorted(row["value"] for batch in batches for row in batch)


def forget_the_last_commit(checkpoint: Path) -> None:
    """What a crash leaves behind whose batch was logged, and not finished."""
    commits = checkpoint / "commits"
    last = max(int(path.name) for path in commits.glob("[0-9]*"))
    (commits / f"{last}").unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


def test_a_checkpoint_of_the_connector_is_gone_on_with(
    spark: SparkSession, connector: Connector, broker: Broker, topic: str, tmp_path: Path
) -> None:
    assert read_by_connector(connector, broker, topic, tmp_path) == ["a", "b", "c"]
    broker.produce(topic, ["d"])
    assert values(run_to_end(stream(spark, options_of(broker, topic)), tmp_path)) == ["d"]


def test_a_first_batch_that_the_connector_did_not_finish_is_refused_in_one_sentence(
    spark: SparkSession, connector: Connector, broker: Broker, topic: str, tmp_path: Path
) -> None:
    read_by_connector(connector, broker, topic, tmp_path)
    forget_the_last_commit(tmp_path)
    with pytest.raises(StreamingQueryException) as caught:
        run_to_end(stream(spark, options_of(broker, topic, startingOffsets="earliest")), tmp_path)
    assert (
        "the first batch of this checkpoint was planned by another source, Spark's own connector perhaps, and never "
        'finished: finish it with format("kafka"), or give this query a checkpointLocation of its own'
    ) in str(caught.value)
    assert read_by_connector(connector, broker, topic, tmp_path) == ["a", "b", "c"], "as the sentence says"


def test_a_later_batch_that_the_connector_did_not_finish_is_read_with_its_new_partitions(
    spark: SparkSession, connector: Connector, broker: Broker, topic: str, tmp_path: Path
) -> None:
    read_by_connector(connector, broker, topic, tmp_path)

    async def grow(client: Client) -> None:
        await Admin(client).create_partitions(topic, 2)

    run_with_client(broker.bootstrap_servers, grow)
    broker.produce(topic, [Record("d", partition=0), Record("of the new one", partition=1)])
    assert read_by_connector(connector, broker, topic, tmp_path) == ["d", "of the new one"]
    forget_the_last_commit(tmp_path)
    broker.produce(topic, [Record("e", partition=1)])
    assert values(run_to_end(stream(spark, options_of(broker, topic)), tmp_path)) == ["d", "e", "of the new one"]
