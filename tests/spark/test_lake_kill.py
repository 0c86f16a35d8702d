"""``kill -9`` of the real commands, with all that they have started: what they have done stays, and is done once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headpond.testing import Broker
from spark.lake_support import record, rows_of_lake, rows_of_topic
from support.broker import headpond_environment
from support.waiting import eventually

RECORDS = 400
RUN_S_MAX = 180
DYING = Path(__file__).with_name("kills") / "dying_command.py"


@pytest.fixture(autouse=True)
def needs_the_extra() -> None:
    for module in ("pyspark", "pyarrow", "numba", "pandas"):
        pytest.importorskip(module)


class Command:
    """``headpond pipeline``, in a group of processes of its own. ``dies_at``: see ``dying_command``."""

    def __init__(self, broker: Broker, *arguments: str, dies_at: str = "") -> None:
        start = [str(DYING), dies_at] if dies_at else ["-m", "headpond"]
        line = [sys.executable, *start, "pipeline", *arguments, "-b", broker.bootstrap_servers]
        self._process = subprocess.Popen(
            [*line, "--master", "local[2]"],
            env=headpond_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def kill_when(self, is_so: Callable[[], bool]) -> None:
        try:
            eventually(lambda: is_so() or self._process.poll() is not None, deadline_s=RUN_S_MAX)
            assert self._process.poll() is None, "it ended before it could be killed"
        finally:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate(timeout=30)

    def dies(self) -> None:
        code, _, err = self.end()
        assert code == -signal.SIGKILL, err

    def end(self) -> tuple[int, str, str]:
        out, err = self._process.communicate(timeout=RUN_S_MAX)
        return self._process.returncode, out.decode(), err.decode()


def state_of(folder: Path) -> dict[str, object]:
    files = list(folder.glob("*.json")) if folder.exists() else []
    return dict(json.loads(files[0].read_text())) if files else {}


def test_a_killed_archive_and_a_killed_restore_go_on(spark_broker: Broker, topic: str, tmp_path: Path) -> None:
    lake, copy = tmp_path / "lake", f"{topic}-copy"
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [record(number, number % 2) for number in range(RECORDS)])
    archive = ("archive", topic, "--to", str(lake), "--batch-records", "4")
    Command(spark_broker, *archive).kill_when(lambda: int(str(state_of(lake / "_lake/topics").get("version", 0))) > 3)
    seen = rows_of_lake(lake, topic)
    everything = rows_of_topic(spark_broker, topic)
    assert 0 < len(seen) < RECORDS and set(seen) < set(everything)
    code, _, err = Command(spark_broker, *archive[:-1], "1000").end()
    assert code == 0, err
    assert rows_of_lake(lake, topic) == everything

    restore = ("restore", topic, "--from", str(lake), "--as", copy, "--batch-records")
    states = lake / "_lake/restores"
    Command(spark_broker, *restore, "4").kill_when(lambda: int(str(state_of(states).get("chunk", 0))) > 2)
    code, _, err = Command(spark_broker, *restore, "1000").end()
    assert code == 0, err
    assert rows_of_topic(spark_broker, copy) == everything


def test_a_killed_snapshot_leaves_the_table_as_it_was_and_can_be_run_again(
    spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [record(number, number % 2, key=f"{number}") for number in range(RECORDS)])
    table = tmp_path / "table"
    command = ("snapshot", topic, "--to", str(table), "--strings", "--overwrite")

    # While it reads.
    Command(spark_broker, *command).kill_when((tmp_path / ".table.table-lock").exists)
    assert not table.exists(), "there was none"

    # When all is written and nothing in its place yet.
    table.mkdir()
    pq.write_table(pa.table({"key": ["k"], "value": ["of before"]}), table / "part-0.parquet")
    (table / "_SUCCESS").touch()
    Command(spark_broker, *command, dies_at="headpond.spark.lake.table:Table._put_in_place").dies()
    assert list(tmp_path.glob(".table.table-new-*")), "it died too early"
    assert pq.read_table(table).to_pylist() == [{"key": "k", "value": "of before"}]

    code, _, err = Command(spark_broker, *command).end()
    assert code == 0, err
    found = {row["key"]: row["value"] for row in pq.read_table(table).to_pylist()}
    assert found == {f"{number}": f"value {number}" for number in range(RECORDS)}
    assert sorted(each.name for each in tmp_path.iterdir()) == [".table.table-lock", "table"]


@pytest.mark.parametrize(
    "moment",
    ["headpond.spark.lake.audit:compare", "headpond.runtime.files:DiskFileSystem.write_file_atomically"],
    ids=["between its two readings", "before the report is written"],
)
def test_a_killed_audit_leaves_the_report_and_the_topic_as_they_were_and_can_be_run_again(
    spark_broker: Broker, topic: str, tmp_path: Path, moment: str
) -> None:
    copy = f"{topic}-copy"
    for name in (topic, copy):
        spark_broker.create_topic(name, partitions=2)
        spark_broker.produce(name, [record(number, number % 2) for number in range(RECORDS)])
    before = rows_of_topic(spark_broker, topic)
    report = tmp_path / "audit.html"
    report.write_text("of before")
    command = ("audit", topic, "--against", spark_broker.bootstrap_servers, "--as", copy, "--report", str(report))
    Command(spark_broker, *command, dies_at=moment).dies()
    assert report.read_text() == "of before" and rows_of_topic(spark_broker, topic) == before
    code, out, err = Command(spark_broker, *command).end()
    assert code == 0 and f"{topic}: no faults in {RECORDS} records" in out, err
    assert report.read_text().startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [report]


def test_a_failure_says_one_sentence_and_shows_no_stack(spark_broker: Broker, topic: str, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    spark_broker.produce(topic, [record(0)])
    code, out, err = Command(spark_broker, "archive", topic, "--to", str(lake)).end()
    assert code == 0 and "archived 1 record to" in out, err
    (file,) = (lake / f"topic={topic}").glob("*/*.parquet")
    file.unlink()
    spark_broker.produce(topic, [record(1)])
    state = lake / f"_lake/topics/{topic}.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "moves": []}))
    code, out, err = Command(spark_broker, "archive", topic, "--to", str(lake)).end()
    told = [line for line in err.splitlines() if not line.startswith("WARNING: ")]
    assert (code, out) == (1, "")
    assert told == [f"headpond: {file} is missing, and the lake says that it is there: was it deleted?"]
