"""What tests of the lake pipelines do again and again: run a command in this process, and look into lakes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headpond.cli.main import main
from headpond.testing import Broker, Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]


class Pipelines:
    """``headpond pipeline`` in this process, on the session that all tests share."""

    def __init__(self, broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
        self._broker = broker
        self._capsys = capsys

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """(exit code, stdout, stderr)."""
        self._capsys.readouterr()
        try:
            code = main(["pipeline", *arguments, "-b", self._broker.bootstrap_servers])
        except SystemExit as end:
            code = int(end.code or 0)
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        found, out, err = self.run(*arguments, "--json")
        assert found == code, err
        return dict(json.loads(out))

    def fails(self, *arguments: str) -> str:
        """What it says when it fails: one line."""
        code, out, err = self.run(*arguments)
        assert code == 1, out
        assert len(err.strip().splitlines()) == 1, err
        return err.strip().removeprefix("headpond: ")


def share_session(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands start no Spark, and stop none."""

    @contextlib.contextmanager
    def shared(options: Any, name: str) -> Iterator[SparkSession]:
        yield session

    monkeypatch.setattr("headpond.cli.pipeline.spark.session_of", shared)


def record(number: int, partition: int = 0, *, key: str | None = None, timestamp_ms: int | None = None) -> Record:
    time_ms = 1_767_225_600_000 + number * 1_000 if timestamp_ms is None else timestamp_ms
    return Record(f"value {number}", key or f"key {number % 5}", {"n": str(number)}, time_ms, partition)


def rows_of_topic(broker: Broker, topic: str) -> list[Row]:
    """Everything that a consumer sees of a topic, but where exactly it stands: in the order of each partition."""
    found = sorted(broker.consume(topic), key=lambda one: (one.partition, one.offset))
    return [(one.partition, one.key, one.value, tuple(one.headers), one.timestamp_ms) for one in found]


def rows_of_lake(lake: Path, topic: str) -> list[Row]:
    """What a reader sees that knows nothing of lakes, in the order of partition and offset."""
    import pyarrow.parquet as pq

    table = pq.read_table(lake / f"topic={topic}")
    found = sorted(table.to_pylist(), key=lambda row: (row["partition"], row["offset"]))
    places = [(row["partition"], row["offset"]) for row in found]
    assert len(places) == len(set(places)), "a record is in the lake twice"
    return [
        (
            row["partition"],
            row["key"],
            row["value"],
            tuple((one["key"], one["value"]) for one in row["headers"] or ()),
            round(row["timestamp"].timestamp() * 1000),
        )
        for row in found
    ]
