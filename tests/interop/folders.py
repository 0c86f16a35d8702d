"""What a Kafka wrote, once for all tests that open its folders, and how such folders get into a broker of ours."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from interop.oracle import Oracle
from interop.programs import java
from support.broker import BrokerProcess, run_headpond
from support.waiting import eventually

TOPICS = ("codecs", "segments", "transactions", "compacted", "untouched")
COMPACT_SOON = {
    "log.cleaner.backoff.ms": 200,
    "log.initial.task.delay.ms": 200,
    "log.retention.check.interval.ms": 1000,
}
Records = dict[str, list[dict[str, Any]]]


class Written(NamedTuple):
    """``closed``: the whole data folder of a Kafka that was stopped. ``running``: its partition folders, copied while
    it ran. ``committed`` and ``uncommitted``: what its own consumers read."""

    closed: Path
    running: Path
    committed: Records
    uncommitted: Records


def write(folder: Path) -> Written:
    kafka = Oracle(folder / "kafka", COMPACT_SOON).start()
    try:
        java("Folders", kafka.bootstrap_servers, "write")
        eventually(lambda: _log_bytes(kafka.data_dir / "compacted-0") < 3_000_000, what="Kafka's cleaner")
        committed = read(kafka.bootstrap_servers, "read_committed")
        uncommitted = read(kafka.bootstrap_servers, "read_uncommitted")
        copy_partitions(kafka.data_dir, folder / "running")
        kafka.stop()
    finally:
        kafka.kill()
    return Written(kafka.data_dir, folder / "running", committed, uncommitted)


def _log_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.log"))


def read(bootstrap: str, isolation: str, topics: tuple[str, ...] = TOPICS) -> Records:
    """Each topic's records, and its end offsets last."""
    found: Records = {topic: [] for topic in topics}
    for line in java("Folders", bootstrap, isolation, *topics):
        found[line["topic"]].append(line)
    return found


def latest_by_key(records: list[dict[str, Any]]) -> dict[str, str]:
    """What a compacted topic stands for, however far its cleaner has come."""
    latest = {record["key"]: record["value"] for record in records if "key" in record}
    return {key: value for key, value in latest.items() if value is not None}


def copy_partitions(source: Path, target: Path, topics: tuple[str, ...] = TOPICS) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for folder in sorted(source.iterdir()):
        if folder.is_dir() and folder.name.rpartition("-")[0] in topics:
            shutil.copytree(folder, target / folder.name)


def adopted(make_broker: Callable[..., BrokerProcess], fill: Callable[[Path], object]) -> BrokerProcess:
    """A broker that serves what ``fill`` has put into its data folder."""
    broker = make_broker()
    fill(broker.data_dir)
    done = run_headpond("adopt", "--data-dir", str(broker.data_dir))
    assert " adopted" in done.stdout, done.stdout + done.stderr
    return broker.start()
