"""The same commands where Spark runs elsewhere: on executors of a cluster, and on a Spark Connect server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")
pytest.importorskip("grpc")

from headpond import __version__
from headpond.testing import Broker, Record
from spark.clusters import CLUSTER, NO_HEADPOND, OTHER_PYTHON, connect_server, environment, python_with
from spark.lake_support import record, rows_of_lake, rows_of_topic
from spark.pipelines import headers_of
from support.broker import headpond_command

RUN_S_MAX = 240

DECLARED = """
name = "{topic}"
[bad_records]
action = "dead-letter"
[source.events]
topic = "{topic}"
format = "json"
schema = "user STRING NOT NULL, n INT"
options.maxOffsetsPerTrigger = 50
[step.doubled]
sql = "SELECT user, n * 2 AS n FROM events"
[sink.out]
from = "doubled"
topic = "{topic}.out"
partitions = 2
key = "user"
[sink.latest]
from = "sums"
topic = "{topic}.sums"
partitions = 1
key = "user"
mode = "update"
[step.sums]
sql = "SELECT user, sum(n) AS n FROM events GROUP BY user"
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module", params=["a cluster", "a Spark Connect server"])
def elsewhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The option that says where."""
    if request.param == "a cluster":
        yield ["--master", CLUSTER]
    else:
        with connect_server(tmp_path_factory.mktemp("server")) as address:
            yield ["--remote", address]


@pytest.fixture
def pipeline(broker: Broker, tmp_path: Path) -> Run:
    """``headpond pipeline``, in a process and a folder of its own."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            headpond_command("pipeline", *arguments, "-b", broker.bootstrap_servers),
            env={**environment(tmp_path), **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=RUN_S_MAX,
            check=False,
        )
        assert "Traceback" not in done.stderr and "\tat " not in done.stderr, done.stderr
        return done

    return run


def told(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_declared_pipeline_runs_there_and_goes_on(
    elsewhere: list[str], pipeline: Run, broker: Broker, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(DECLARED.format(topic=topic))
    broker.create_topic(topic, partitions=2)
    events = [json.dumps({"user": f"u{number % 3}", "n": number}) for number in range(99)]
    broker.produce(topic, [*events, "broken"])
    done = told(pipeline("run", "p.toml", "--json", *elsewhere))
    assert {one["name"]: one["rows_read"] for one in done["sinks"]} == dict.fromkeys(
        ("out", "latest", "dead-letters"), 100
    )
    assert done["dead_letters"] == 1
    broker.produce(topic, [Record(json.dumps({"user": "u0", "n": 1000}))])
    done = told(pipeline("run", "p.toml", "--json", *elsewhere))
    assert [one["rows_read"] for one in done["sinks"]] == [1, 1, 1]

    values = sorted(json.loads(one.value or b"")["n"] for one in broker.consume(f"{topic}.out", at_least=100))
    assert values == [*range(0, 198, 2), 2000]
    sums = {
        json.loads(one.value or b"")["user"]: json.loads(one.value or b"")["n"]
        for one in broker.consume(f"{topic}.sums")
    }
    assert sums == {"u0": sum(range(0, 99, 3)) + 1000, "u1": sum(range(1, 99, 3)), "u2": sum(range(2, 99, 3))}
    (letter,) = broker.consume(f"{topic}-dead-letters")
    assert headers_of(letter)["dead-letter.reason"] == "the value is no JSON"


TABLE = """
name = "{topic}"
[source.events]
topic = "{topic}"
format = "json"
schema = "n INT"
[sink.out]
from = "events"
parquet = "out"
"""


def test_folders_are_those_beside_the_file_and_not_where_spark_works(
    elsewhere: list[str], pipeline: Run, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Two people with a pipeline of one name each, at one Spark Connect server."""
    import pyarrow.parquet as pq

    if elsewhere[0] == "--master":
        pytest.skip("the driver works where the command does")
    broker.produce(topic, ['{"n": 1}', '{"n": 2}'])
    for user, more, rows in (("anna", [], [1, 2]), ("bob", ['{"n": 3}'], [1, 2, 3])):
        home = tmp_path / user
        home.mkdir()
        (home / "p.toml").write_text(TABLE.format(topic=topic))
        broker.produce(topic, [*map(Record, more)])
        done = told(pipeline("run", f"{user}/p.toml", "--json", *elsewhere))
        assert [one["rows_read"] for one in done["sinks"]] == [len(rows)]
        assert sorted(pq.read_table(home / "out").column("n").to_pylist()) == rows
        assert (home / ".pipelines" / topic / "checkpoints" / "out" / "metadata").exists()
    for path in (tmp_path / "anna" / "out" / "_spark_metadata").iterdir():
        path.unlink()  # as if the table were of no query: it is looked at here before anything is written
    (tmp_path / "anna" / "out" / "_spark_metadata" / "9").write_text("v1\n")
    refused = pipeline("run", "anna/p.toml", *elsewhere)
    assert refused.returncode == 1 and "holds batch 9, and the checkpoint knows none after" in refused.stderr


CONSOLE = TABLE.replace('parquet = "out"', "console = true")
UPSERT = TABLE.replace('parquet = "out"', 'parquet = "out"\nupsert = "n"')


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (CONSOLE, "a console can't be written with --remote: it would print where Spark runs"),
        (UPSERT, "a table with upsert can't be written with --remote"),
    ],
    ids=["console", "upsert"],
)
def test_sinks_that_a_connect_server_can_not_have_are_refused_before_it_is_asked(
    text: str, sentence: str, pipeline: Run, broker: Broker, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(text.format(topic=topic))
    done = pipeline("run", "p.toml", "--remote", "sc://127.0.0.1:1")
    assert (done.returncode, done.stderr) == (1, f"headpond: p.toml:7: sink out: {sentence}\n")
    assert not (tmp_path / ".pipelines").exists()


def test_a_lake_is_written_and_restored_there(
    elsewhere: list[str], pipeline: Run, broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    broker.create_topic(topic, partitions=3)
    broker.produce(topic, [record(number, number % 3) for number in range(60)])
    done = told(pipeline("archive", topic, "--to", str(lake), "--batch-records", "40", "--json", *elsewhere))
    assert (done["records"], done["commits"]) == (60, 2)
    assert rows_of_lake(lake, topic) == rows_of_topic(broker, topic)
    restore = ("restore", topic, "--from", str(lake), "--as", f"{topic}-copy", "--batch-records", "40", "--json")
    assert told(pipeline(*restore, *elsewhere))["records"] == 60
    assert rows_of_topic(broker, f"{topic}-copy") == rows_of_topic(broker, topic)


def test_a_failure_there_is_one_sentence(
    elsewhere: list[str], pipeline: Run, broker: Broker, topic: str, tmp_path: Path
) -> None:
    if elsewhere[0] == "--master":
        pytest.skip("test_pipeline_refusals.py has it")
    text = DECLARED.format(topic=topic).replace("n * 2 AS n", "nn * 2 AS n")
    (tmp_path / "p.toml").write_text(text)
    broker.produce(topic, ["{}"])
    done = pipeline("run", "p.toml", *elsewhere)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("headpond: p.toml:11: step doubled: A column, variable, or function parameter"), done
    assert not (tmp_path / ".pipelines" / topic / "checkpoints").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (OTHER_PYTHON, "and 3.99 on an executor: every node needs the same minor version"),
        (NO_HEADPOND, f"an executor has no headpond: install headpond[spark] {__version__} on every node"),
    ],
    ids=["another Python", "no Headpond"],
)
def test_nodes_that_are_not_alike_are_told_before_anything_is_written(
    change: str, sentence: str, pipeline: Run, broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.produce(topic, [record(0)])
    lake = tmp_path / "lake"
    python = python_with(tmp_path / "other", change)
    done = pipeline("archive", topic, "--to", str(lake), "--master", CLUSTER, PYSPARK_PYTHON=python)
    lines = [line for line in done.stderr.splitlines() if line.startswith("headpond: ")]
    assert done.returncode == 1 and len(lines) == 1 and sentence in lines[0], done.stderr
    assert not lake.exists()
