"""What tests of declared pipelines do again and again: a declaration in a folder of its own, and a run to its end."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headpond.spark.pipeline.load import load_pipeline
from headpond.testing import Broker, StoredRecord

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from headpond.spark.pipeline.runner import Summary


class Declared:
    """A pipeline in ``folder``/pipeline.toml, and runs of it in the tests' own Spark session."""

    def __init__(self, folder: Path, spark: SparkSession, broker: Broker, text: str, **more: str) -> None:
        self.folder = folder
        self.spark = spark
        self.broker = broker
        self.shown: list[Row] = []
        self.file = folder / "pipeline.toml"
        self.write(text)
        for name, content in more.items():
            (folder / name.replace("__", ".")).write_text(textwrap.dedent(content))

    def write(self, text: str) -> None:
        self.file.write_text(textwrap.dedent(text))

    def run(self, watch: Any = lambda figures: None) -> Summary:
        from headpond.spark.pipeline.runner import Runner

        with Runner(load_pipeline(str(self.file)), self.broker.bootstrap_servers) as runner:
            runner.survey()
            return runner.run(self.spark, runner.plan(self.spark), show=self._show, watch=watch)

    def _show(self, sink: Any, frame: Any, batch_id: int) -> None:
        self.shown += frame.collect()

    def table(self, path: str) -> list[dict[str, Any]]:
        return [row.asDict(recursive=True) for row in self.spark.read.parquet(str(self.folder / path)).collect()]


def counts(summary: Summary) -> dict[str, tuple[int, int]]:
    """Rows in and out, by sink."""
    return {one.name: (one.rows_read, one.rows_written) for one in summary.figures}


def json_values(broker: Broker, topic: str, at_least: int) -> list[Any]:
    return [json.loads(record.value or b"null") for record in broker.consume(topic, at_least=at_least)]


def headers_of(record: StoredRecord) -> dict[str, str]:
    return {name: (value or b"").decode() for name, value in record.headers}
