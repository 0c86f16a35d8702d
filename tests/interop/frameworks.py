"""Java frameworks on top of a broker, as processes that a test ends or kills: Kafka Streams, Connect, MirrorMaker.

Their jars come through ``tools/kafka_oracle frameworks``.
"""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from headpond.testing import Broker, BrokerFailed, StoredRecord
from interop.oracle import ROOT
from interop.programs import DOWNLOAD_S, HERE, require
from support.waiting import eventually

WAIT_S = 120.0
"""A Java process on a loaded machine that waits for the session of its predecessor to expire."""
T = TypeVar("T")


def framework_jars() -> str:
    """Their class path; skips where it can't be had."""
    require("java", " 17 or newer")
    require("mvn")
    command = [str(ROOT / "tools" / "kafka_oracle"), "frameworks"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False)
    if done.returncode:
        pytest.skip(f"no frameworks: {done.stderr.strip()[-300:]}")
    return done.stdout.strip()


class Framework:
    """One Java process; what it says is in its log."""

    def __init__(self, jars: str, log: Path, main: str, *arguments: str) -> None:
        command = ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        self._log = log
        with log.open("ab") as both:
            self._process = subprocess.Popen(
                [*command, "-cp", jars, main, *arguments], stdin=subprocess.PIPE, stdout=both, stderr=both
            )

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-5000:]

    def until(self, condition: Callable[[], T], what: str) -> T:
        def holds() -> T:
            if self._process.poll() is not None:
                pytest.fail(f"ended with {self._process.returncode} before {what}\n{self.log()}")
            return condition()

        return eventually(holds, what=lambda: f"{what}\n{self.log()}", deadline_s=WAIT_S, retry_on=(OSError,))

    def written(self, broker: Broker, topic: str, at_least: int) -> list[StoredRecord]:
        """What is committed in a topic of the framework's, when there is so much."""
        try:
            return broker.consume(topic, at_least=at_least, timeout_s=WAIT_S)
        except BrokerFailed as error:
            pytest.fail(f"{error}\n{self.log()}")

    def end(self) -> int:
        """By the end of its input, for a program of ours."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(WAIT_S)

    def terminate(self) -> None:
        """By SIGTERM, which Connect takes for a request to close everything."""
        self._process.terminate()
        self._process.wait(WAIT_S)

    def kill_in_a_transaction(self, broker: Broker, topic: str) -> None:
        """When it has written something to the topic that it has not committed."""

        def is_caught() -> bool:
            if not held_back(broker, topic):
                return False
            self._process.send_signal(signal.SIGSTOP)
            if held_back(broker, topic):
                return True
            self._process.send_signal(signal.SIGCONT)  # it has committed meanwhile
            return False

        self.until(is_caught, "a transaction is open")
        self.kill()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


class Frameworks:
    """All of a test's, in its folder. Whatever is left at the end is killed."""

    def __init__(self, jars: str, folder: Path) -> None:
        self.folder = folder
        self._jars = jars
        self._started: list[Framework] = []

    def start(self, main: str, *arguments: object) -> Framework:
        log = self.folder / f"framework-{len(self._started)}.log"
        self._started.append(Framework(self._jars, log, main, *map(str, arguments)))
        return self._started[-1]

    def streams(self, broker: Broker, application: str, state: str, **settings: object) -> Framework:
        told = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        program = HERE / "java" / "Streams.java"
        return self.start(str(program), broker.bootstrap_servers, application, self.folder / state, *told)

    def properties(self, name: str, settings: Mapping[str, object]) -> Path:
        path = self.folder / f"{name}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def kill_all(self) -> None:
        for framework in self._started:
            framework.kill()


def held_back(broker: Broker, topic: str) -> int:
    """Records in open and aborted transactions."""
    everything = len(broker.consume(topic, uncommitted=True))
    return everything - len(broker.consume(topic))


def rest(port: int, method: str, path: str, document: object = None) -> Any:
    """What a Connect worker's REST interface answers, True for nothing; None while it can't, as during a rebalance."""
    data = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, method=method)
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return json.loads(answer.read() or b"true")
    except urllib.error.HTTPError as error:
        if error.code in (400, 404, 409, 500, 503):
            return None
        raise
