"""The servers under test, each a process on 127.0.0.1 with its data in a folder of its own.

A server is started, asked for topics, killed or stopped by its process id, and never outlives the run: whoever
starts one calls `stop` (the Bench does so at the end, also after an error). All have the same life:

    prepare -> spawn -> wait_ready -> ... -> stop | kill -> spawn again on the same folder
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from . import before, procstat
from .tools import ORACLE, Tools
from .wire import RequestFailed, Wire

START_MAX_S = 90.0
STOP_MAX_S = 30.0

# Page cache that grows into memory never used before costs more than any broker: keep returning pages to the system.
RECYCLED = {"retention.bytes": "100000000", "segment.bytes": "100000000", "file.delete.delay.ms": "500"}
# The page cache must be returned while a run is going on, from the start on, not five minutes later.
SWEEP_OFTEN = ("log.retention.check.interval.ms=1000", "log.initial.task.delay.ms=500")


class CannotStart(Exception):
    """The server can't be had on this machine, or did not come up; the message says why."""


class Server:
    """What is common to all; subclasses say how the process is started."""

    name = "?"
    title = "?"

    def __init__(self, folder: Path, tools: Tools) -> None:
        self.folder = folder
        self.tools = tools
        self.port = free_port()
        self.process: subprocess.Popen[str] | None = None
        self._log: IO[str] | None = None

    # -- life

    def command(self) -> list[str]:
        raise NotImplementedError

    def prepare(self) -> None:
        """What is done once for a new folder and is not part of a start."""

    def spawn(self) -> None:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self._log = (self.folder.parent / f"{self.folder.name}.log").open("a+")
        # pip byte-compiles what it installs, and in a checkout the first start does; else every start would compile.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.process = subprocess.Popen(
            self.command(),
            stdin=subprocess.PIPE,
            stdout=self.stdout(),
            stderr=self._log,
            text=True,
            env=environment,
        )

    def stdout(self) -> int | IO[str]:
        assert self._log is not None
        return self._log

    def start(self) -> None:
        self.prepare()
        self.spawn()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Ready when a connection is accepted; what a broker is not ready for yet is asked again by create_topic."""
        deadline = time.monotonic() + START_MAX_S
        while True:
            if self.process is None or self.process.poll() is not None:
                raise CannotStart(f"{self.title} ended at start: {self.last_words()}")
            try:
                with Wire.connect(self.port, 0.0):
                    return
            except OSError:
                if time.monotonic() > deadline:
                    raise CannotStart(f"{self.title} is not ready after {START_MAX_S:.0f} s") from None
                time.sleep(0.02)

    def stop(self) -> None:
        """An orderly end; a process that does not obey is killed."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9, as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        family = procstat.descendants(self.process.pid)
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(STOP_MAX_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for child in family[1:]:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.process.stdin:
            self.process.stdin.close()
        if self._log:
            self._log.close()
        self.process = None

    def wipe(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def last_words(self) -> str:
        if self._log is None:
            return ""
        self._log.flush()
        lines = Path(self._log.name).read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-4:])[-600:] or "it said nothing"

    # -- questions

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, f"{self.name} is not running"
        return self.process.pid

    def cpu_s(self) -> float:
        return procstat.cpu_s(self.pid)

    def rss_mb(self) -> float:
        return procstat.rss_bytes(self.pid) / 1e6

    def create_topic(self, name: str, partitions: int, configs: dict[str, str] | None = None) -> None:
        """Returns when every partition has acknowledged one record."""
        deadline = time.monotonic() + START_MAX_S
        while True:
            try:
                with Wire.connect(self.port, deadline) as wire:
                    wire.create_topic(name, partitions, configs or {})
                    for partition in range(partitions):
                        wire.produce_until_acked(name, partition, deadline)
                return
            except (OSError, RequestFailed):
                if time.monotonic() > deadline or self.process is None or self.process.poll() is not None:
                    raise
                time.sleep(0.2)

    def end_offset(self, topic: str, partition: int = 0) -> int:
        with Wire.connect(self.port, time.monotonic() + 5) as wire:
            return wire.end_offset(topic, partition)


class Headpond(Server):
    name = "headpond"
    title = "Headpond"
    settings: tuple[str, ...] = ()  # more --set arguments, from the command line of the bench

    def command(self) -> list[str]:
        command = [self.program(), "serve", "--listen", self.bootstrap, "--data-dir", str(self.folder)]
        for setting in (*SWEEP_OFTEN, *self.settings):
            command += ["--set", self.own(setting)]
        return command

    def program(self) -> str:
        beside_us = Path(sys.executable).parent / "headpond"
        program = str(beside_us) if beside_us.exists() else shutil.which("headpond")
        if program is None:
            raise CannotStart("no headpond command in this environment")
        return program

    def own(self, setting: str) -> str:
        """The setting as this server calls it."""
        return setting


class Before(Headpond):
    """Headpond at an earlier commit, from an environment of its own: to see what changed, in one run."""

    name = "before"
    commit = before.COMMIT  # or what the command line of the bench says

    def __init__(self, folder: Path, tools: Tools) -> None:
        super().__init__(folder, tools)
        self.title = f"Headpond at {self.commit}"

    def prepare(self) -> None:
        try:
            before.build(self.commit)
        except before.CannotBuild as error:
            raise CannotStart(f"{self.title} can't be had: {error}") from None

    def program(self) -> str:
        return before.program()

    def own(self, setting: str) -> str:
        prefix = f"{Headpond.name}."
        return f"{before.script()}.{setting.removeprefix(prefix)}" if setting.startswith(prefix) else setting


class HeadpondMetrics(Headpond):
    """With its metrics port open, for whoever scrapes it."""

    name = "headpond-metrics"
    title = "Headpond, metrics scraped"

    def __init__(self, folder: Path, tools: Tools) -> None:
        super().__init__(folder, tools)
        self.metrics_port = free_port()

    def command(self) -> list[str]:
        return [*super().command(), "--metrics-listen", f"127.0.0.1:{self.metrics_port}"]


class Kafka(Server):
    """Apache Kafka, one KRaft node; its own defaults except that retention is looked at often."""

    name = "kafka"
    title = "Apache Kafka"
    settings: tuple[str, ...] = SWEEP_OFTEN

    def prepare(self) -> None:
        if not shutil.which("java"):
            raise CannotStart("Apache Kafka: no java")
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(self._oracle("format"), capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            raise CannotStart(f"Apache Kafka can't be had: {done.stderr.strip()[-300:]}")

    def command(self) -> list[str]:
        return self._oracle("serve")

    def _oracle(self, what: str) -> list[str]:
        return [str(ORACLE), what, str(self.port), str(self.folder), *self.settings]


def kafka_version() -> str:
    """Of the Apache Kafka that the script ``ORACLE`` starts."""
    chosen = re.search(r"^VERSION=\$\{HEADPOND_ORACLE_VERSION:-(\S+)\}$", ORACLE.read_text(), re.MULTILINE)
    assert chosen is not None
    return os.environ.get("HEADPOND_ORACLE_VERSION") or chosen[1]


class KafkaFlushing(Kafka):
    """Kafka that calls fsync before it answers."""

    name = "kafka-fsync"
    title = "Apache Kafka, log.flush.interval.messages=1"
    settings = (*Kafka.settings, "log.flush.interval.messages=1")


class Mock(Server):
    """librdkafka's mock broker: it chooses its port itself and learns of topics through stdin."""

    name = "mock"
    title = "librdkafka mock (memory only)"

    def command(self) -> list[str]:
        if reason := self.tools.available("rdkmock"):
            raise CannotStart(f"mock broker: {reason}")
        return [str(self.tools.path("rdkmock"))]

    def stdout(self) -> int | IO[str]:
        return subprocess.PIPE

    def wait_ready(self) -> None:
        self.port = int(self._line().split(",")[0].rsplit(":", 1)[1])

    def create_topic(self, name: str, partitions: int, configs: dict[str, str] | None = None) -> None:
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write(f"topic {name} {partitions}\n")
        self.process.stdin.flush()
        self._line()

    def _line(self) -> str:
        assert self.process is not None and self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line:
            raise CannotStart(f"mock broker ended: {self.last_words()}")
        return line


KINDS: dict[str, type[Server]] = {
    kind.name: kind for kind in (Headpond, Before, HeadpondMetrics, Kafka, KafkaFlushing, Mock)
}
OURS = (Headpond.name, Before.name)
ORDINARY = tuple(name for name in KINDS if name != Before.name)
"""Those that run unless the command line names others."""


def free_port() -> int:
    """A port that is free together with the one after it: Kafka's controller listens there."""
    for _ in range(100):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
    raise CannotStart("no two free ports in a row")
