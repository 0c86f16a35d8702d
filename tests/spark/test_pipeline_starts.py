"""A pipeline on a busy machine: Spark waits ten seconds for a Python process to start, and has no setting for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.testing import Broker
from spark.pipelines import Declared, counts, json_values

pytest.importorskip("pyspark")

from penstock.spark.pipeline import runner
from penstock.spark.pipeline.failures import RunFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWO_SINKS = """
    name = "{topic}"
    [source.rows]
    topic = "{topic}"
    format = "json"
    schema = "n INT"
    [sink.first]
    from = "rows"
    topic = "{topic}-first"
    partitions = 1
    [sink.second]
    from = "rows"
    topic = "{topic}-second"
    partitions = 1
"""


class LatePython:
    """Starts queries as a machine does on which Python is too late ``times`` times, for the second sink."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.times = times
        self._start = runner.start
        monkeypatch.setattr(runner, "start", self)

    def __call__(self, output: Any, *arguments: Any) -> Any:
        if output.name != "second" or self.times == 0:
            return self._start(output, *arguments)
        self.times -= 1
        return Ended()


class Ended:
    """A query as Spark leaves it that did not get its Python."""

    isActive = False
    lastProgress = None

    def exception(self) -> Exception:
        from pyspark.errors import StreamingQueryException

        return StreamingQueryException("Python worker failed to connect back.\n=== Streaming Query ===\n...")

    def stop(self) -> None:
        pass


def test_a_pipeline_starts_its_queries_again_when_python_was_too_slow(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_broker.produce(topic, [f'{{"n": {n}}}' for n in range(5)])
    declared = Declared(tmp_path, spark, spark_broker, TWO_SINKS.format(topic=topic))
    LatePython(monkeypatch, times=2)
    assert counts(declared.run()) == {"first": (5, 5), "second": (5, 5)}
    for sink in ("first", "second"):
        assert json_values(spark_broker, f"{topic}-{sink}", 5) == [{"n": n} for n in range(5)]


def test_a_pipeline_fails_when_python_is_too_slow_again_and_again(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_broker.produce(topic, ['{"n": 1}'])
    declared = Declared(tmp_path, spark, spark_broker, TWO_SINKS.format(topic=topic))
    late = LatePython(monkeypatch, times=100)
    with pytest.raises(RunFailed, match="sink second: Python worker failed to connect back"):
        declared.run()
    assert late.times == 100 - runner.STARTS_MAX
    late.times = 0
    assert json_values(spark_broker, f"{topic}-first", 0) in ([], [{"n": 1}])
    declared.run()
    assert (
        json_values(spark_broker, f"{topic}-first", 1) == json_values(spark_broker, f"{topic}-second", 1) == [{"n": 1}]
    )
