"""A real Apache Kafka for a test: started, stopped and killed by its own pid, with its data in the test's folder."""

from __future__ import annotations

import atexit
import os
import random
import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from support.waiting import eventually
from support.wire import ConnectionClosed, Wire

ROOT = Path(__file__).resolve().parents[2]
START_S = 120.0
"""A Java process on a loaded machine."""

_alive: list[subprocess.Popen[bytes]] = []


@atexit.register
def _end_what_was_forgotten() -> None:
    for process in _alive:
        if process.poll() is None:
            process.kill()
            process.wait()


def two_free_ports() -> int:
    """A port that is free together with the next one: the broker's and its controller's. Below those that the system
    gives to outgoing connections, one of which could take it while Kafka starts."""
    while True:
        port = random.randrange(12_000, 30_000, 2)
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


class Oracle:
    """``tools/kafka_oracle serve``. ``data_dir`` may hold what another broker left."""

    def __init__(self, data_dir: Path, settings: Mapping[str, object] | None = None) -> None:
        self.data_dir = data_dir
        self.settings = dict(settings or {})
        self.listeners: Mapping[str, int] = {}
        """More of them, by name, beside the one without security."""
        self.port = 0  # another one for each start, unless it is told
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self, port: int | None = None) -> Oracle:
        self._starts += 1
        self.port = port or two_free_ports()
        command = [str(ROOT / "tools" / "kafka_oracle"), "serve", str(self.port), str(self.data_dir)]
        command += [f"{name}={value}" for name, value in {**self._listening(), **self.settings}.items()]
        environment = {**os.environ, "HEADPOND_ORACLE_HEAP": "-Xms128m -Xmx512m", "HEADPOND_ORACLE_LOG": "warn"}
        with self._log_path().open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
            )
        _alive.append(self._process)
        eventually(self._answers, what=lambda: f"Kafka to serve\n{self.log()}", deadline_s=START_S, retry_on=(OSError,))
        return self

    def _listening(self) -> dict[str, str]:
        if not self.listeners:
            return {}
        own, controller = f"PLAINTEXT://127.0.0.1:{self.port}", f"CONTROLLER://127.0.0.1:{self.port + 1}"
        more = [f"{name}://127.0.0.1:{port}" for name, port in self.listeners.items()]
        # Told as localhost: a name that is in the certificates.
        told = [one.replace("127.0.0.1", "localhost") for one in more]
        return {"listeners": ",".join([own, controller, *more]), "advertised.listeners": ",".join([own, *told])}

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"Kafka ended with {self._process.returncode}\n{self.log()}")
        from headpond.protocol.schema.metadata import MetadataRequest

        try:
            with Wire(self.bootstrap_servers) as wire:
                return bool(wire.call(MetadataRequest(topics=[]), 12).brokers)
        except (ConnectionClosed, OSError):
            return False

    def stop(self) -> None:
        """SIGTERM: Kafka closes its logs and leaves the clean-shutdown marker."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(START_S)

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        """What this start of it said: warnings and errors."""
        return self._log_path().read_text(errors="replace")

    def complaints(self) -> list[str]:
        """What it says of files that it can't use, or had to make anew."""
        return [line for line in self.log().splitlines() if re.search(r" ERROR |Exception|[Cc]orrupt|rebuild", line)]

    def _log_path(self) -> Path:
        return self.data_dir.parent / f"{self.data_dir.name}-kafka-{self._starts}.log"
