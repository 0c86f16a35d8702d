"""Spark's log of events, which history servers show for years: no password of ours is in it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark import logged_job
from spark.clusters import connect_server
from spark.secured import CANARY, USER, Secured, headpond, no_canary_below, no_canary_in, opened, secured_gate
from support.broker import headpond_environment
from support.certificates import needs_openssl

for module in ("pyspark", "pyarrow", "numba", "pandas"):
    pytest.importorskip(module)

pytestmark = needs_openssl

ROOT = Path(__file__).resolve().parents[2]
JOB_S_MAX = 300


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_gate(tmp_path_factory.mktemp("certificates")) as found:
        yield found


def with_log(folder: Path) -> dict[str, str]:
    """As text: the search has to see what a reader of the log would."""
    folder.mkdir()
    return {"spark.eventLog.enabled": "true", "spark.eventLog.dir": folder.as_uri(), "spark.eventLog.compress": "false"}


def the_regex_of_the_guide() -> dict[str, str]:
    text = (ROOT / "docs" / "guides" / "spark.md").read_text()
    found = re.search(r"`(spark\.sql\.redaction\.options\.regex)` set to `([^`]+)`", text)
    assert found is not None
    return {found[1]: found[2]}


def run(*line: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *line],
        env=headpond_environment(),
        input=given,
        capture_output=True,
        text=True,
        timeout=JOB_S_MAX,
        check=False,
    )


def with_password(secured: Secured, password: str = CANARY) -> dict[str, str]:
    """The other way to say who one is, with the password in an option of its own; and a key in another."""
    given = secured.options(password)
    del given["kafka.sasl.jaas.config"]
    return {**given, "kafka.sasl.username": USER, "kafka.sasl.password": password, **secured.key_options()}


def events(folder: Path) -> list[dict[str, Any]]:
    files = [file for file in folder.rglob("*") if file.name.startswith(("events_", "local-"))]
    return [json.loads(line) for file in files if file.is_file() for line in file.read_text().splitlines()]


def run_job(secured: Secured, topic: str, folder: Path, way: str, session: str, settings: dict[str, str]) -> None:
    options = secured.options if way == "JAAS" else lambda *more: with_password(secured, *more)
    for name in (topic, f"{topic}-copy"):
        assert headpond("topics", "create", name, *opened(secured, folder)) == 0
    plan = {
        "session": session,
        "settings": settings,
        "options": options(),
        "wrong": options(f"{CANARY}-wrong"),
        "staging": f"s3a://{USER}:{CANARY}@bucket/staging",
        "topic": topic,
        "folder": str(folder),
    }
    done = run(str(Path(logged_job.__file__)), json.dumps(plan))
    assert done.returncode == 0, done.stderr[-4_000:]
    no_canary_in(done.stdout, done.stderr)


def check(log: Path, secured: Secured) -> list[dict[str, Any]]:
    """Everything is in the log that should be, and no secret; its events."""
    found = events(log)
    kinds = {event["Event"].rpartition(".")[2] for event in found}
    assert {"SparkListenerSQLExecutionStart", "SparkListenerSQLExecutionEnd", "SparkListenerJobStart"} <= kinds
    assert "QueryProgressEvent" in kinds or "StreamingQueryListener$QueryProgressEvent" in kinds
    assert logged_job.REFUSAL in json.dumps(found), "the log has failures, too"
    no_canary_below(log, secured.key_line)
    return found


WAYS = pytest.mark.parametrize("way", ["JAAS", "a password and a key"])


@pytest.mark.parametrize("session", ["ours", "plain"], ids=["a session of ours", "a session with the guide's setting"])
@WAYS
def test_no_event_of_a_job_shows_a_secret(secured: Secured, topic: str, tmp_path: Path, session: str, way: str) -> None:
    log = tmp_path / "log"
    settings = {**with_log(log), **(the_regex_of_the_guide() if session == "plain" else {})}
    run_job(secured, topic, tmp_path, way, session, settings)
    check(log, secured)


@WAYS
def test_no_event_of_a_spark_connect_server_shows_a_secret(
    secured: Secured, topic: str, tmp_path: Path, way: str
) -> None:
    log = tmp_path / "log"
    with connect_server(tmp_path, with_log(log)) as address:
        run_job(secured, topic, tmp_path, way, address, {})
    commands = [event["statementText"] for event in check(log, secured) if "statementText" in event]
    assert any("kafka.bootstrap.servers" in text and "CREATE OR REPLACE" in text for text in commands), "as SQL"
    assert any("*********(redacted)" in text and "CREATE" not in text for text in commands), "and as messages"


def test_no_event_of_a_pipeline_shows_the_password(secured: Secured, topic: str, tmp_path: Path) -> None:
    there, log = opened(secured, tmp_path), tmp_path / "log"
    assert run("-m", "headpond", "produce", topic, "--create", *there, given="one\ntwo\n").returncode == 0
    more = [f"--spark-config={name}={value}" for name, value in with_log(log).items()]
    done = run("-m", "headpond", "pipeline", "archive", topic, "--to", str(tmp_path / "lake"), *there, *more)
    assert done.returncode == 0, done.stderr[-4_000:]
    assert "SparkListenerJobStart" in {event["Event"] for event in events(log)}
    no_canary_below(log)
