"""``kill -9`` of ``headpond pipeline run`` with all that it has started, at the moments that are hard: nothing is lost,
nothing is twice, and good and dead records are together those that were read."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headpond.testing import Broker, Record
from support.broker import headpond_environment
from support.waiting import eventually

RUN_S_MAX = 240
DYING = Path(__file__).with_name("kills") / "dying_command.py"
GOOD, KEYS = 60, 5

LATEST = """
name = "{topic}"
[bad_records]
action = "dead-letter"
[source.people]
topic = "{topic}"
format = "json"
schema = "id INT NOT NULL, n INT"
options.maxOffsetsPerTrigger = 25
[step.slim]
sql = "SELECT id, n FROM people"
[sink.latest]
from = "slim"
parquet = "latest"
upsert = "id"
"""


COPY = """
name = "{topic}"
[source.people]
topic = "{topic}"
format = "json"
schema = "n INT"
[sink.copy]
from = "people"
topic = "{topic}-copy"
partitions = 2
"""


@pytest.fixture(autouse=True)
def needs_the_extra() -> None:
    for module in ("pyspark", "pyarrow", "numba", "pandas"):
        pytest.importorskip(module)


class Run:
    """In a group of processes of its own. ``dies_at``: see ``dying_command``."""

    def __init__(self, broker: Broker, folder: Path, *arguments: str, dies_at: str = "") -> None:
        start = [str(DYING), dies_at] if dies_at else ["-m", "headpond"]
        line = [sys.executable, *start, "pipeline", "run", "p.toml", "-b", broker.bootstrap_servers]
        self._process = subprocess.Popen(
            [*line, "--master", "local[2]", "--json", *arguments],
            env=headpond_environment(),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def java_pid(self) -> int:
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has just ended
                name, _, more = (process / "stat").read_text().rpartition(")")
                if name.endswith("(java") and int(more.split()[2]) == self.pid:
                    return int(process.name)
        raise AssertionError("it has no Java")

    def kill_when(self, is_so: Callable[[], bool]) -> None:
        try:
            eventually(lambda: is_so() or self._process.poll() is not None, deadline_s=RUN_S_MAX)
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has died by itself
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate(timeout=30)

    def dies(self) -> None:
        code, err = self.end()
        assert code == -signal.SIGKILL, err

    def end(self) -> tuple[int, str]:
        _, err = self._process.communicate(timeout=RUN_S_MAX)
        return self._process.returncode, err.decode()


def test_good_and_dead_records_are_together_those_that_were_read_whenever_a_run_is_killed(
    spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "p.toml").write_text(LATEST.format(topic=topic))
    spark_broker.create_topic(topic, partitions=2)
    bad = ["broken", '{"n": 1}', '{"id": 1}]', '{"id": 2}],[{"id": 3}']
    rows = [json.dumps({"id": n % KEYS, "n": n}) for n in range(GOOD)]
    values = [*rows[:20], *bad[:2], *rows[20:], *bad[2:]]
    spark_broker.produce(topic, [Record(value, partition=1) for value in values])
    offsets = tmp_path / ".pipelines" / topic / "checkpoints" / "latest" / "offsets"

    def first_offsets_are_under_way() -> bool:
        """Looked for without a pause once it may be any moment: such a file is there for a moment only."""
        tries = 10_000 if offsets.exists() else 0
        return any(name.endswith(".tmp") or name == "0" for _ in range(tries) for name in os.listdir(offsets))

    versions = "headpond.spark.pipeline.versions:Versions"
    # Dies at the first switch at the latest: a look that comes late finds no run that has done everything.
    Run(spark_broker, tmp_path, dies_at=f"{versions}.switch").kill_when(first_offsets_are_under_way)
    Run(spark_broker, tmp_path, dies_at=f"{versions}.switch").dies()
    assert not (tmp_path / "latest" / "current").exists()
    Run(spark_broker, tmp_path, dies_at=f"{versions}.remove_but").dies()
    assert (tmp_path / "latest" / "current").exists()
    code, err = Run(spark_broker, tmp_path).end()
    assert code == 0, err

    found = pq.read_table(tmp_path / "latest" / "current").to_pylist()
    assert {row["id"]: row["n"] for row in found} == {n % KEYS: n for n in range(GOOD - KEYS, GOOD)}
    letters = spark_broker.consume(f"{topic}-dead-letters", at_least=len(bad))
    assert sorted(letter.value or b"" for letter in letters) == sorted(value.encode() for value in bad)


def test_a_second_process_is_refused_until_the_first_one_is_killed_and_each_record_is_copied_once(
    spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(COPY.format(topic=topic))
    spark_broker.create_topic(topic, partitions=2)

    def written(first: int, end: int) -> list[str]:
        spark_broker.produce(topic, [Record(json.dumps({"n": n}), partition=n % 2) for n in range(first, end)])
        return [json.dumps({"n": n}, separators=(",", ":")) for n in range(end)]

    def copied() -> list[str]:
        return sorted((record.value or b"").decode() for record in spark_broker.consume(f"{topic}-copy"))

    expected = written(0, 20)
    first = Run(spark_broker, tmp_path, "--every", "1 second")
    commits = tmp_path / ".pipelines" / topic / "checkpoints" / "copy" / "commits"

    def is_refused_beside_the_first() -> bool:
        if not (commits / "1").exists():  # the first batch is an empty one
            return False
        code, err = Run(spark_broker, tmp_path).end()
        busy = f"headpond: pipeline {topic} is running already, as process {first.pid}"
        assert (code, err.splitlines()[-1:]) == (1, [busy])
        assert copied() == sorted(expected)
        written(20, 40)  # the first one may be at it when it is killed
        return True

    first.kill_when(is_refused_beside_the_first)
    expected = written(40, 60)
    code, err = Run(spark_broker, tmp_path).end()
    assert code == 0, err
    assert copied() == sorted(expected)


def test_a_java_process_that_is_killed_is_told_in_one_sentence(
    spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    """As a system does that is short of memory."""
    (tmp_path / "p.toml").write_text(COPY.format(topic=topic))
    spark_broker.create_topic(topic)
    run = Run(spark_broker, tmp_path, "--every", "1 second")
    folder = tmp_path / ".pipelines" / topic
    sentence = "Spark's Java process was killed: is there enough memory?"
    try:
        eventually(lambda: (folder / "checkpoints" / "copy" / "commits" / "0").exists(), deadline_s=RUN_S_MAX)
        os.kill(run.java_pid, signal.SIGKILL)
        code, err = run.end()
    finally:
        run.kill_when(lambda: True)
    assert (code, [line for line in err.splitlines() if not line.startswith("WARNING: ")]) == (
        1,
        [f"headpond: {sentence}"],
    )
    status = json.loads((folder / "status.json").read_text())
    assert (status["state"], status["reason"]) == ("failed", sentence)
