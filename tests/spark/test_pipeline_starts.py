"""A pipeline on a busy machine: Spark waits ten seconds for a Python process to start, and has no setting for it.

Queries are stand-ins here: what a real machine has time for decides nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headpond.testing import Broker

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException

from headpond.spark.pipeline import runner
from headpond.spark.pipeline.failures import RunFailed
from headpond.spark.pipeline.load import load_pipeline
from headpond.spark.pipeline.runner import STARTS_MAX, Plan, Runner
from headpond.spark.pipeline.sinks import Output

LATE = "Python worker failed to connect back.\n=== Streaming Query ===\nIdentifier: ..."
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


class Query:
    """Has ended when it is looked at, with ``failure``; or goes on until one batch of it was seen."""

    def __init__(self, failure: str | None = None, *, has_batch: bool = False) -> None:
        self._failure = failure
        self._progress = {"batchId": 0, "timestamp": "now", "sources": []} if has_batch else None
        self.isActive = has_batch

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        self.isActive = False
        return self._progress

    def exception(self) -> Exception | None:
        return None if self._failure is None else StreamingQueryException(self._failure)

    def awaitTermination(self, timeout_s: float) -> None:
        pass

    def stop(self) -> None:
        self.isActive = False


class Starts:
    """Runs the pipeline of two sinks, the second of which gets these queries, one after the other."""

    def __init__(self, folder: Path, broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started: list[str] = []
        self._second: list[Query] = []
        self._file = folder / "pipeline.toml"
        self._file.write_text(TWO_SINKS.format(topic=topic))
        self._broker = broker
        broker.create_topic(topic)
        monkeypatch.setattr(runner, "start", self._start)

    def run(self, *second: Query) -> None:
        self._second = list(second)
        pipeline = load_pipeline(str(self._file))
        with Runner(pipeline, self._broker.bootstrap_servers) as running:
            running.survey()
            no_frame: Any = None
            outputs = [Output(sink.name, sink, no_frame, pipeline.group_of(sink), {}) for sink in pipeline.sinks]
            running.run(no_frame, Plan(outputs, {}), show=lambda *_: None, watch=lambda figures: None)

    def _start(self, output: Output, *_: Any) -> Query:
        self.started.append(output.name)
        return Query() if output.name == "first" else self._second.pop(0)


@pytest.fixture
def starts(tmp_path: Path, spark_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> Starts:
    return Starts(tmp_path, spark_broker, topic, monkeypatch)


def test_a_query_is_started_again_when_python_was_too_slow_and_the_others_go_on(starts: Starts) -> None:
    starts.run(Query(LATE), Query(LATE), Query())
    assert starts.started == ["first", "second", "second", "second"]


def test_a_run_fails_when_python_is_too_slow_again_and_again(starts: Starts) -> None:
    with pytest.raises(RunFailed, match=r"sink second: Python worker failed to connect back$"):
        starts.run(*[Query(LATE) for _ in range(10)])
    assert starts.started.count("second") == STARTS_MAX


def test_a_batch_that_was_done_in_between_counts(starts: Starts) -> None:
    starts.run(Query(LATE), Query(LATE), Query(LATE, has_batch=True), Query(LATE), Query())
    assert starts.started.count("second") == 5


def test_another_failure_is_told_at_once(starts: Starts) -> None:
    with pytest.raises(RunFailed, match="sink second: no such luck"):
        starts.run(Query("no such luck"), Query())
    assert starts.started == ["first", "second"]
