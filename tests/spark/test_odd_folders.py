"""Folders whose names mean something to Spark, which takes a path that it reads for a pattern."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headpond.testing import Broker
from spark.lake_support import Pipelines, record, rows_of_lake, rows_of_topic
from spark.pipelines import Declared, json_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ODD = "la[k]e {a,b} 100% *?"


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Beside a folder that the pattern would stand for."""
    (tmp_path / ODD.replace("[k]", "k")).mkdir()
    folder = tmp_path / ODD
    folder.mkdir()
    return folder


def test_a_lake_in_a_folder_with_any_name_is_read_and_restored(
    pipelines: Pipelines, spark_broker: Broker, topic: str, odd: Path
) -> None:
    lake = odd / "lake"
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [record(n, partition=n % 2) for n in range(10)])
    pipelines.json("archive", topic, "--to", str(lake))
    assert len(rows_of_lake(lake, topic)) == 10
    said = pipelines.json("snapshot", topic, "--from", str(lake), "--to", str(odd / "table"))
    assert (said["records"], said["keys"]) == (10, 5)
    pipelines.json("restore", topic, "--from", str(lake), "--as", f"{topic}-again")
    assert rows_of_topic(spark_broker, f"{topic}-again") == rows_of_topic(spark_broker, topic)


def test_a_pipeline_in_a_folder_with_any_name_runs_and_goes_on(
    spark: SparkSession, spark_broker: Broker, topic: str, odd: Path
) -> None:
    import pyarrow.parquet as pq

    declared = Declared(
        odd,
        spark,
        spark_broker,
        f"""
        name = "{topic}"
        [source.rows]
        topic = "{topic}"
        format = "json"
        schema = "id INT, n INT"
        [sink.all]
        from = "rows"
        parquet = "all {{x}}"
        [sink.last]
        from = "rows"
        parquet = "last [y]"
        upsert = "id"
        [sink.out]
        from = "rows"
        topic = "{topic}-out"
        partitions = 1
        """,
    )
    for run in range(2):
        spark_broker.produce(topic, [f'{{"id": {n % 2}, "n": {10 * run + n}}}' for n in range(4)])
        declared.run()
    assert sorted(pq.read_table(odd / "all {x}")["n"].to_pylist()) == [0, 1, 2, 3, 10, 11, 12, 13]
    assert sorted(pq.read_table(odd / "last [y]" / "current")["n"].to_pylist()) == [12, 13]
    assert len(json_values(spark_broker, f"{topic}-out", 8)) == 8
