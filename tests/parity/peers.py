"""The brokers under comparison as fresh processes: ours, and Apache Kafka's through ``tools/kafka_oracle``."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from headpond.protocol.schema.create_topics import CreateTopicsRequest
from headpond.protocol.schema.describe_cluster import DescribeClusterRequest
from interop.oracle import two_free_ports
from parity.surroundings import Peer
from support.broker import BrokerProcess
from support.waiting import eventually
from support.wire import ConnectionClosed, Wire

ORACLE = Path(__file__).parents[2] / "tools" / "kafka_oracle"
KAFKA_STARTS_IN_S = 120.0


@contextlib.contextmanager
def headpond(folder: Path, settings: Mapping[str, str]) -> Iterator[Peer]:
    process = BrokerProcess(folder, settings=settings)

    def restart(changed: Mapping[str, str]) -> None:
        process.settings.update(changed)
        process.restart()

    try:
        process.start()
        yield _peer(process.bootstrap_servers, process.data_dir, restart)
        process.stop()
        assert "Traceback" not in process.logs(), process.logs()
    finally:
        process.kill()


@contextlib.contextmanager
def kafka(folder: Path, settings: Mapping[str, str]) -> Iterator[Peer]:
    folder.mkdir(parents=True, exist_ok=True)
    port, data_dir = two_free_ports(), folder / "data"
    command = [str(ORACLE), "serve", str(port), str(data_dir)]
    current = dict(settings)
    bootstrap = f"127.0.0.1:{port}"
    environment = {"HEADPOND_ORACLE_HEAP": "-Xmx512M", **os.environ}
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        given = [f"{name}={value}" for name, value in current.items()]
        with (folder / "log").open("ab") as log:
            running.append(subprocess.Popen([*command, *given], stdout=log, stderr=log, env=environment))
        eventually(
            lambda: _is_up(running[-1], bootstrap, folder / "log"), what="Apache Kafka", deadline_s=KAFKA_STARTS_IN_S
        )

    def restart(changed: Mapping[str, str]) -> None:
        current.update(changed)
        running[-1].terminate()
        running[-1].wait()
        start()

    try:
        start()
        yield _peer(bootstrap, data_dir, restart)
    finally:
        running[-1].kill()
        running[-1].wait()


def _peer(bootstrap: str, data_dir: Path, restart: Callable[[Mapping[str, str]], object]) -> Peer:
    with Wire(bootstrap) as wire:
        cluster_id: str = wire.call(DescribeClusterRequest(), 2).cluster_id
    return Peer(bootstrap, data_dir, cluster_id, restart)


def _is_up(process: subprocess.Popen[bytes], bootstrap: str, log: Path) -> bool:
    """It listens before it can create topics; a creation that is only validated goes the whole way."""
    assert process.poll() is None, f"Apache Kafka ended with exit code {process.returncode}\n{log.read_text()}"
    probe = CreateTopicsRequest.CreatableTopic(name="probe", num_partitions=1, replication_factor=1)
    try:
        with Wire(bootstrap) as wire:
            answer = wire.call(CreateTopicsRequest(topics=[probe], timeout_ms=5_000, validate_only=True), 7)
            return bool(answer.topics[0].error_code == 0)
    except (OSError, ConnectionClosed):
        return False
