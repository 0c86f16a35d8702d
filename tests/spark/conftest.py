"""One Spark session and one broker for all tests of Spark in a process. Without the extra `spark` they are skipped.

``make test`` runs the tests that need no JVM beside the core's, then those of the tier; ``make spark-test`` runs all.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
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
STARTS_SPARK_PROCESSES = {
    "test_lake_guide",
    "test_lake_kill",
    "test_pipeline_cli",
    "test_pipeline_cluster",
    "test_pipeline_guide",
    "test_pipeline_kill",
    "test_sink_kills",
    "test_spark_event_log",
    "test_spark_guide",
}
TIER = {
    "source": ("test_spark_batch", "test_spark_stream"),
    "sink": ("test_sink_stream",),  # and what test_sink_kills marks itself
    "pipeline": ("test_pipeline_run",),
    "lake": ("test_lake_archive", "test_lake_restore"),
}


def pytest_configure() -> None:
    """Spark's Python processes take PySpark from ``$SPARK_HOME/python/lib/pyspark.zip``, if it is there, and compile it
    each time, a second of CPU for each process. In a home without it they take the installed one."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None or "SPARK_HOME" in os.environ:
        return
    home = Path(tempfile.mkdtemp(prefix="spark-home-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for name in ("bin", "jars", "sbin"):
        (home / name).symlink_to(Path(spec.origin).parent / name)
    os.environ["SPARK_HOME"] = str(home)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what starts Spark: with the session below, or as processes of its own."""
    tier = {module for modules in TIER.values() for module in modules}
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue
        if "spark" in getattr(item, "fixturenames", ()) or item.path.stem in STARTS_SPARK_PROCESSES:
            item.add_marker(pytest.mark.jvm)
            if item.path.stem in tier:
                item.add_marker(pytest.mark.tier)


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
