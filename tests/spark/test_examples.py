"""The examples do what their table says, each from its own events."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headpond.spark.pipeline.load import load_pipeline
from headpond.testing import Broker, Record
from spark.pipelines import headers_of, json_values
from support.broker import headpond_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN_S_MAX = 300
NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"


class Example:
    """A copy of an example's folder, its topics filled with its events, run to its end."""

    def __init__(self, name: str, folder: Path, spark: SparkSession, broker: Broker) -> None:
        self.folder = folder
        self.spark = spark
        self.broker = broker
        shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True)
        for topic, records in runpy.run_path(str(folder / "events.py"))["TOPICS"].items():
            broker.create_topic(topic, partitions=2)
            broker.produce(topic, [Record(as_text(one["value"]), key=one["key"]) for one in records()])

    def run(self, file: str) -> None:
        from headpond.spark.pipeline.runner import Runner

        with Runner(load_pipeline(str(self.folder / file)), self.broker.bootstrap_servers) as runner:
            runner.survey()
            runner.run(self.spark, runner.plan(self.spark), show=lambda *_: None, watch=lambda _: None)

    def table(self, path: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.spark.read.parquet(str(self.folder / path)).collect()]


def as_text(value: Any) -> str | None:
    """As ``headpond produce --json`` writes it."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


@pytest.fixture(autouse=True)
def windows_close_without_more_data(request: pytest.FixtureRequest) -> Iterator[None]:
    spark: SparkSession = request.getfixturevalue("spark")
    before = spark.conf.get(NO_DATA)
    spark.conf.set(NO_DATA, "true")
    yield
    spark.conf.set(NO_DATA, before)


def test_clicks_become_sessions(spark: SparkSession, spark_broker: Broker, tmp_path: Path) -> None:
    example = Example("clickstream", tmp_path, spark, spark_broker)
    example.run("pipeline.toml")
    found = {
        (one["user"], one["clicks"], one["came_to"], one["left_from"])
        for one in json_values(spark_broker, "sessions", 3)
    }
    sessions = {("anna", 3, "/", "/hats/42"), ("bob", 2, "/shoes", "/cart"), ("anna", 1, "/", "/")}
    assert found == sessions
    assert {
        (one["user"], one["clicks"], one["came_to"], one["left_from"]) for one in example.table("lake/sessions")
    } == sessions
    (letter,) = spark_broker.consume("clickstream-dead-letters", at_least=1)
    assert headers_of(letter)["dead-letter.reason"] == "the value is no JSON"


def test_orders_get_names_and_prices(spark: SparkSession, spark_broker: Broker, tmp_path: Path) -> None:
    Example("orders", tmp_path, spark, spark_broker).run("pipeline.toml")
    found = sorted(json_values(spark_broker, "enriched-orders", 4), key=lambda order: order["id"])
    assert [(order["id"], order["name"], order["total"]) for order in found] == [
        (1, "red apple", 6.0),
        (2, "bread", 3.2),
        (3, None, None),
        (4, "red apple", 3.0),
    ]


def test_fraud_rules_find_the_hasty_and_the_split_card(
    spark: SparkSession, spark_broker: Broker, tmp_path: Path
) -> None:
    Example("fraud", tmp_path, spark, spark_broker).run("pipeline.py")
    found = {(one["card"], one["rule"], one["why"]) for one in json_values(spark_broker, "fraud-alerts", 3)}
    assert found == {
        ("hasty", "many payments", "4 payments of 100.00 together"),
        ("split", "two countries", "NL and BR"),
    }


def test_changes_become_a_table_that_is_up_to_date(spark: SparkSession, spark_broker: Broker, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    example = Example("cdc", tmp_path, spark, spark_broker)
    example.run("pipeline.yaml")
    rows = {row["id"]: (row["name"], row["city"]) for row in example.table("lake/customers/current")}
    assert rows == {1: ("Anna", "Bern"), 3: ("Karl", "Lima")}


def test_spark_declarative_pipelines_work_on_our_source_and_sink(
    spark: SparkSession, spark_broker: Broker, tmp_path: Path
) -> None:
    from headpond.spark.java import find_java

    shutil.copytree(EXAMPLES / "declarative", tmp_path, dirs_exist_ok=True)
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///a/folder/of/yours", (tmp_path / "storage").as_uri()))
    spark_broker.create_topic("sdp-orders")
    spark_broker.create_topic("big-orders")
    environment = {
        **headpond_environment({"ORDERS_BOOTSTRAP": spark_broker.bootstrap_servers}),
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": find_java().home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PATH": os.environ["PATH"],
    }
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    settings = (
        "spark.connect.grpc.binding.address=127.0.0.1",
        "spark.sql.catalogImplementation=hive",
        "spark.ui.enabled=false",
    )
    for total in (250, 300):  # the second run goes on where the first one ended
        spark_broker.produce("sdp-orders", [json.dumps({"id": total, "total": total}), '{"id": 2, "total": 5}'])
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("spark-pipelines")),
                "run",
                *(part for setting in settings for part in ("--conf", setting)),
            ],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=RUN_S_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = spark_broker.consume("big-orders", at_least=2)
    assert [(record.key, json.loads(record.value or b"")["total"]) for record in found] == [
        (b"250", 250),
        (b"300", 300),
    ]


@pytest.mark.jvm
def test_the_demo_runs_from_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    environment = {**headpond_environment(), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert '{"user":"bob","began":"2026-03-01T10:10:00.000Z"' in done.stdout
    assert "clickstream: done since" in done.stdout
    assert not list(tmp_path.glob("headpond*"))
