"""Spark's own Kafka connector, as a process that takes orders: ``connector.read(broker, subscribe="orders")``.

The connector's jars and a PySpark of its version, in an environment of its own, come through ``tools/kafka_oracle``.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

import pytest

from interop.oracle import ROOT
from interop.programs import DOWNLOAD_S, HERE, require

ANSWER_S = 180.0
"""A query on a loaded machine; the first one waits for Java, too."""
Row = dict[str, Any]


class ConnectorFailed(Exception):
    """What Spark said."""


def prepared_connector() -> tuple[str, str]:
    """The Python with PySpark, and the jars; skips where they can't be had."""
    require("java", " 17 or newer")
    require("mvn")
    return _from_oracle("spark-python"), _from_oracle("spark-jars")


def _from_oracle(what: str) -> str:
    command = [str(ROOT / "tools" / "kafka_oracle"), what]
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=2 * DOWNLOAD_S, check=False)
    if done.returncode:
        pytest.skip(f"no Spark connector: {done.stderr.strip()[-300:]}")
    return done.stdout.strip()


class Connector:
    def __init__(self, python: str, jars: str, log: Path) -> None:
        self._log = log
        environment = {**os.environ, "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment.pop("SPARK_HOME", None)
        with log.open("wb") as log_file:
            self._process = subprocess.Popen(
                [python, str(HERE / "spark" / "connector.py"), jars],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                text=True,
                env=environment,
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._orders: IO[str] = self._process.stdin
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()

    def _listen(self, answers: IO[str]) -> None:
        for line in answers:
            self._answers.put(line)
        self._answers.put("")

    def close(self) -> None:
        self._orders.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def read(self, bootstrap: str, **options: str) -> list[Row]:
        found: list[Row] = self._do("read", options=_with(bootstrap, options))["rows"]
        return found

    def tasks_of(self, bootstrap: str, **options: str) -> int:
        found: int = self._do("read", options=_with(bootstrap, options))["tasks"]
        return found

    def write(self, bootstrap: str, rows: list[Row], **options: str) -> None:
        self._do("write", options=_with(bootstrap, options), rows=rows)

    def stream(self, bootstrap: str, checkpoint: Path, **options: str) -> list[list[Row]]:
        """Everything that came since the checkpoint: the rows of each micro-batch."""
        found: list[list[Row]] = self._do("stream", options=_with(bootstrap, options), checkpoint=str(checkpoint))[
            "batches"
        ]
        return found

    def copy(self, bootstrap: str, checkpoint: Path, *, to: str, **options: str) -> None:
        target = {**_with(bootstrap, {"topic": to}), "includeHeaders": "true"}
        self._do("copy", options=_with(bootstrap, options), checkpoint=str(checkpoint), target=target)

    def _do(self, name: str, **order: Any) -> dict[str, Any]:
        print(json.dumps({"do": name, **order}), file=self._orders, flush=True)
        try:
            line = self._answers.get(timeout=ANSWER_S)
        except queue.Empty:
            line = ""
        assert line, f"{name}: no answer\n{self._log.read_text(errors='replace')[-5000:]}"
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ConnectorFailed(answer["error"])
        return answer


def _with(bootstrap: str, options: dict[str, str]) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, **options}
