"""Kafka Connect and MirrorMaker: workers keep their state in compacted topics, a source writes exactly once, and a
cluster is copied into another with its settings and the offsets of its groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headpond.testing import Record, StoredRecord
from interop.frameworks import Framework, Frameworks, held_back, rest
from interop.oracle import two_free_ports
from support.broker import BrokerProcess
from support.cli import Cli

pytestmark = pytest.mark.interop

FILE = "org.apache.kafka.connect.file.FileStream"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
INTERNAL = ("config", "offset", "status")


@pytest.fixture
def make_broker(frameworks: Frameworks) -> Iterator[Callable[[str], BrokerProcess]]:
    made: list[BrokerProcess] = []

    def make(name: str) -> BrokerProcess:
        settings = {"group.initial.rebalance.delay.ms": 0}
        made.append(BrokerProcess(frameworks.folder / name, settings=settings))
        return made[-1].start()

    try:
        yield make
        for broker in made:
            broker.stop()
            assert "Traceback" not in broker.logs(), broker.logs()
    finally:
        for broker in made:
            broker.close()


@pytest.fixture
def broker(make_broker: Callable[[str], BrokerProcess]) -> BrokerProcess:
    return make_broker("broker")


@pytest.fixture
def source_file(tmp_path: Path) -> Path:
    return tmp_path / "source.txt"


def worker_settings(broker: BrokerProcess, port: int) -> dict[str, object]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "listeners": f"http://127.0.0.1:{port}",
        "plugin.discovery": "service_load",
        "key.converter": STRINGS,
        "value.converter": STRINGS,
        "offset.flush.interval.ms": 500,
    }


def source(file: Path) -> dict[str, str]:
    return {"name": "source", "connector.class": f"{FILE}SourceConnector", "file": str(file), "topic": "filed"}


def sink(file: Path) -> dict[str, str]:
    return {"name": "sink", "connector.class": f"{FILE}SinkConnector", "file": str(file), "topics": "filed"}


def append(file: Path, first: int, end: int) -> None:
    with file.open("a") as lines:
        lines.write("".join(f"{n}\n" for n in range(first, end)))


def numbers(records: list[StoredRecord]) -> list[int]:
    return [int(record.value or -1) for record in records]


def start_distributed(frameworks: Frameworks, broker: BrokerProcess, port: int) -> Framework:
    settings = worker_settings(broker, port) | {
        "group.id": "workers",
        "exactly.once.source.support": "enabled",
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 1_000,
        "scheduled.rebalance.max.delay.ms": 0,
        **{f"{each}.storage.topic": f"workers-{each}" for each in INTERNAL},
        **{f"{each}.storage.replication.factor": 1 for each in INTERNAL},
    }
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    worker = frameworks.start(main, frameworks.properties("worker", settings))
    worker.until(lambda: rest(port, "GET", "/connectors") is not None, "the worker serves")
    return worker


def order(worker: Framework, port: int, method: str, path: str, document: object = None) -> Any:
    """Until it is taken: a worker refuses while it rebalances, or stops a connector."""
    return worker.until(lambda: rest(port, method, f"/connectors/{path}", document), f"{method} {path}")


def described(broker: BrokerProcess, topic: str) -> dict[str, str]:
    topics = Cli(broker.bootstrap_servers).ok("topics", "describe", topic, "--json").document
    return {each["name"]: each["value"] for each in topics[0]["configs"]}


def test_a_standalone_worker_copies_a_file_through_a_topic(
    frameworks: Frameworks, broker: BrokerProcess, source_file: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.txt"
    append(source_file, 0, 100)
    settings = worker_settings(broker, two_free_ports()) | {"offset.storage.file.filename": tmp_path / "offsets"}
    files = [
        frameworks.properties("worker", settings),
        frameworks.properties("source", source(source_file)),
        frameworks.properties("sink", sink(copy)),
    ]
    worker = frameworks.start("org.apache.kafka.connect.cli.ConnectStandalone", *files)
    for lines in (100, 200):
        append(source_file, 100, lines)
        worker.until(lambda: copy.read_text() == source_file.read_text(), "the copy is complete")
    assert numbers(broker.consume("filed")) == list(range(200))


def test_a_source_writes_every_line_once_while_broker_and_worker_are_killed(
    frameworks: Frameworks, broker: BrokerProcess, source_file: Path
) -> None:
    port, lines = two_free_ports(), 0
    worker = start_distributed(frameworks, broker, port)
    by_interval = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "1000"}
    order(worker, port, "PUT", "source/config", source(source_file) | by_interval)
    for _ in range(3):
        append(source_file, lines, lines + 1_000)
        lines += 1_000
        worker.written(broker, "filed", lines - 900)
        append(source_file, lines, lines + 100)
        lines += 100
        broker.restart(kill=True)
    worker.written(broker, "filed", lines)
    append(source_file, lines, lines + 1_000)
    lines += 1_000
    worker.kill_in_a_transaction(broker, "filed")
    worker = start_distributed(frameworks, broker, port)
    assert numbers(worker.written(broker, "filed", lines)) == list(range(lines))
    assert {described(broker, f"workers-{each}")["cleanup.policy"] for each in INTERNAL} == {"compact"}
    worker.terminate()
    assert numbers(broker.consume("filed")) == list(range(lines)), "and nothing came after"
    assert held_back(broker, "filed"), "what was aborted"


def test_the_offsets_of_connectors_are_shown_changed_and_reset(
    frameworks: Frameworks, broker: BrokerProcess, source_file: Path, tmp_path: Path
) -> None:
    port, copy = two_free_ports(), tmp_path / "copy.txt"
    append(source_file, 0, 10)
    worker = start_distributed(frameworks, broker, port)
    order(worker, port, "PUT", "source/config", source(source_file))
    order(worker, port, "PUT", "sink/config", sink(copy))
    worker.until(lambda: copy.read_text() == source_file.read_text(), "the copy is complete")
    assert offsets(worker, port, "source") == [{"position": 20}]
    worker.until(lambda: offsets(worker, port, "sink"), "the sink has committed")
    for name in ("source", "sink"):
        order(worker, port, "PUT", f"{name}/stop")
    end = broker.consume("filed")[-1].offset
    change = {"partition": {"kafka_topic": "filed", "kafka_partition": 0}, "offset": {"kafka_offset": end}}
    order(worker, port, "PATCH", "sink/offsets", {"offsets": [change]})
    assert offsets(worker, port, "sink") == [{"kafka_offset": end}]
    order(worker, port, "DELETE", "source/offsets")
    assert offsets(worker, port, "source") == []
    for name in ("source", "sink"):
        order(worker, port, "PUT", f"{name}/resume")
    twice = [*range(10), *range(10)]
    assert numbers(worker.written(broker, "filed", 20)) == twice
    copied = "".join(f"{n}\n" for n in [*range(10), 9, *range(10)])
    worker.until(lambda: copy.read_text() == copied, "the sink goes on where it was moved to")


def offsets(worker: Framework, port: int, connector: str) -> list[Any]:
    return [each["offset"] for each in order(worker, port, "GET", f"{connector}/offsets")["offsets"]]


def test_mirror_maker_copies_records_settings_and_the_offsets_of_groups(
    frameworks: Frameworks, make_broker: Callable[[str], BrokerProcess]
) -> None:
    here, there = make_broker("here"), make_broker("there")
    here.create_topic("orders", partitions=3, retention_ms=86_400_000)
    sent = [Record(str(n), key=str(n % 7), headers={"n": str(n)}) for n in range(300)]
    here.produce("orders", sent[:200])
    to_the_end = ("--topic", "orders", "--to-latest", "--execute")
    Cli(here.bootstrap_servers).ok("groups", "reset-offsets", "readers", *to_the_end)
    once_a_second = ("emit.checkpoints", "sync.group.offsets", "refresh.topics", "refresh.groups", "sync.topic.configs")
    factors = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", *(f"{each}.storage" for each in INTERNAL))
    settings = {
        "clusters": "here,there",
        "here.bootstrap.servers": here.bootstrap_servers,
        "there.bootstrap.servers": there.bootstrap_servers,
        "here->there.enabled": "true",
        "topics": "orders",
        "replication.factor": 1,
        "sync.group.offsets.enabled": "true",
        "offset.lag.max": 0,
        **{f"{each}.interval.seconds": 1 for each in once_a_second},
        **{f"{each}.replication.factor": 1 for each in factors},
    }
    mirror = frameworks.start("org.apache.kafka.connect.mirror.MirrorMaker", frameworks.properties("mirror", settings))
    mirror.written(there, "here.orders", 200)
    mirror.until(lambda: described(there, "here.orders").get("retention.ms") == "86400000", "settings are copied")
    mirror.until(lambda: committed(there, "readers") == 200, "the group is copied")
    there.restart(kill=True)
    here.produce("orders", sent[200:])
    mirror.until(lambda: contents(there, "here.orders") == contents(here, "orders"), "the rest is copied")
    assert len(contents(here, "orders")) == 300


def contents(broker: BrokerProcess, topic: str) -> set[object]:
    """Without order and repetition: MirrorMaker copies at least once here."""
    return {(one.key, one.value, one.headers, one.partition) for one in broker.consume(topic)}


def committed(broker: BrokerProcess, group: str) -> int:
    """Summed over its partitions; 0 without the group."""
    said = Cli(broker.bootstrap_servers)("groups", "describe", group, "--json")
    return sum(each["committed_offset"] for each in said.document[0]["partitions"]) if said.code == 0 else 0
