"""One Spark session and one broker for all tests of Spark in a process. Without the extra `spark` they are skipped."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from headpond.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.lake_support import Pipelines

SPARK_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    for module in ("pyspark", "pyarrow", "numba", "pandas"):
        pytest.importorskip(module)
    from headpond.spark.session import start_session

    session = start_session("headpond-tests", master="local[2]", config=SPARK_SETTINGS)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def spark_broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic() -> str:
    return f"spark-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def pipelines(
    spark: SparkSession,
    spark_broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Pipelines:
    """``headpond pipeline`` on the session that all tests share."""
    from spark.lake_support import Pipelines, share_session

    share_session(spark, monkeypatch)
    return Pipelines(spark_broker, capsys)
