"""Spark and brokers that ask who one is: read, write, pipelines; and a password that nobody gets to see.

The password is searched for in everything that a user or an operator may look at: what is printed, errors with their
pages of Java, plans, progress, checkpoints, lakes, the folders of pipelines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark.lake_support import share_session
from spark.secured import CANARY, Secured, headpond, no_canary_below, no_canary_in, opened, secured_gate
from support.certificates import needs_openssl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = needs_openssl


@pytest.fixture(scope="module")
def secured(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_gate(tmp_path_factory.mktemp("certificates")) as found:
        yield found


@pytest.fixture
def filled(spark: SparkSession, secured: Secured, topic: str, tmp_path: Path) -> str:
    """A topic with the numbers from 0 to 99, written by the sink."""
    assert headpond("topics", "create", topic, "--partitions", "2", *opened(secured, tmp_path)) == 0
    frame = spark.range(0, 100, 1, 2).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    frame.write.format("headpond").options(**secured.options(topic=topic)).mode("append").save()
    return topic


def shown_of(frame: Any) -> str:
    """The plans, in every form that Spark has."""
    execution = frame._jdf.queryExecution()
    return f"{execution.toString()} {execution.simpleString()} {execution.logical().toJSON()} {frame!r}"


def test_what_is_written_is_read_and_no_plan_shows_the_password(
    spark: SparkSession, secured: Secured, filled: str, capfd: pytest.CaptureFixture[str]
) -> None:
    frame = spark.read.format("headpond").options(**secured.options(subscribe=filled)).load()
    found = sorted(int(bytes(row.value)) for row in frame.collect())
    assert found == list(range(100))
    frame.explain(extended=True)
    frame.explain("formatted")
    no_canary_in(*capfd.readouterr(), shown_of(frame))


def test_a_stream_leaves_the_password_in_no_progress_and_in_no_file(
    spark: SparkSession, secured: Secured, filled: str, topic: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    copy = f"{topic}-copy"
    assert headpond("topics", "create", copy, *opened(secured, tmp_path)) == 0
    rows = spark.readStream.format("headpond").options(**secured.options(subscribe=filled, startingOffsets="earliest"))
    query = (
        rows.load()
        .select("key", "value")
        .writeStream.format("headpond")
        .options(**secured.options(topic=copy, stagingDir=str(tmp_path / "staging")))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    progress = " ".join(str(one) for one in query.recentProgress)
    assert '"numOutputRows": 100' in progress
    query.explain(extended=True)
    no_canary_in(progress, json.dumps(query.status), *capfd.readouterr())
    no_canary_below(tmp_path / "checkpoint")
    copied = spark.read.format("headpond").options(**secured.options(subscribe=copy)).load()
    assert copied.count() == 100


def test_a_wrong_password_is_one_sentence_and_not_waited_for(
    spark: SparkSession, secured: Secured, filled: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from pyspark.errors import PySparkException

    wrong = secured.options(f"{CANARY}-wrong")
    frame = spark.range(1).selectExpr("CAST(id AS STRING) AS value")
    for action in (
        lambda: spark.read.format("headpond").options(**wrong, subscribe=filled).load().collect(),
        lambda: frame.write.format("headpond").options(**wrong, topic=filled).mode("append").save(),
    ):
        with pytest.raises(PySparkException, match="does not let user alice in by SCRAM-SHA-512") as error:
            action()
        no_canary_in(str(error.value), repr(error.value), *capfd.readouterr())


def test_lakes_are_filled_and_emptied_with_a_command_config_and_hold_no_password(
    spark: SparkSession,
    secured: Secured,
    filled: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    share_session(spark, monkeypatch)
    lake, there = str(tmp_path / "lake"), opened(secured, tmp_path)
    assert headpond("pipeline", "archive", filled, "--to", lake, *there) == 0
    assert headpond("pipeline", "restore", filled, "--from", lake, "--as", f"{filled}-back", *there) == 0
    against = ["--against", secured.address, "--against-command-config", there[-1], "--as", f"{filled}-back"]
    assert headpond("pipeline", "audit", filled, *against, "--report", str(tmp_path / "audit.html"), *there) == 0
    assert headpond("pipeline", "snapshot", filled, "--to", str(tmp_path / "table"), *there) == 0
    no_canary_below(tmp_path)
    no_canary_in(*capfd.readouterr())
    wrong = opened(secured, tmp_path, f"{CANARY}-wrong")
    assert headpond("pipeline", "archive", filled, "--to", lake, "--trace", *wrong) == 1
    said = capfd.readouterr()
    assert "does not let user alice in by SCRAM-SHA-512" in said.err and "Traceback" in said.err
    no_canary_in(*said)


DECLARED = """
name = "{topic}"

[source.numbers]
topic = "{topic}"
format = "binary"

[sink.copy]
from = "numbers"
topic = "{topic}-piped"
partitions = 1
format = "binary"
"""


def test_a_declared_pipeline_runs_with_a_command_config_and_leaves_no_password(
    spark: SparkSession,
    secured: Secured,
    filled: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    share_session(spark, monkeypatch)
    monkeypatch.setattr("headpond.cli.pipeline.run_declared.session_of", _session_of())
    file = tmp_path / "pipeline.toml"
    file.write_text(DECLARED.format(topic=filled))
    there = opened(secured, tmp_path)
    assert headpond("pipeline", "run", str(file), "--trace", *there) == 0, capfd.readouterr()
    assert headpond("pipeline", "status", str(file), "--json", "--command-config", there[-1]) == 0
    said = capfd.readouterr()
    (status,) = json.loads(said.out[said.out.index("[") :])
    assert status["queries"][0]["lag"] == 0 and "the lag is that of its last batch" not in said.err
    no_canary_in(*said)
    no_canary_below(tmp_path / ".pipelines")
    wrong = opened(secured, tmp_path, f"{CANARY}-wrong")
    assert headpond("pipeline", "run", str(file), "--trace", *wrong) == 1
    said = capfd.readouterr()
    assert "does not let user alice in by SCRAM-SHA-512" in said.err
    no_canary_in(*said)


def _session_of() -> Any:
    from headpond.cli.pipeline import spark as pipeline_spark

    return pipeline_spark.session_of
