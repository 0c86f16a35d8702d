"""``headpond.EmbeddedBroker``: the real broker on a thread of this process."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headpond import EmbeddedBroker
from headpond.runtime import disk_file
from headpond.testing import BrokerFailed, Record, StartFailed, TopicNotCreated
from support.broker import headpond_environment
from support.cli import Cli
from support.waiting import eventually


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "data") as broker:
        yield broker


def test_topics_are_created_and_listed_and_records_go_in_and_out(broker: EmbeddedBroker) -> None:
    assert broker.topics() == {}
    broker.create_topic("orders", partitions=3, cleanup_policy="compact")
    assert broker.topics() == {"orders": 3}
    written = broker.produce("orders", [Record("two apples", "anna", partition=1), ("bob", "bread")])
    assert [record.value for record in written] == [b"two apples", b"bread"]
    assert sorted(record.value or b"" for record in broker.consume("orders")) == [b"bread", b"two apples"]
    assert [record.key for record in broker.consume("orders", partition=1, at_least=1)][:1] == [b"anna"]


def test_other_clients_find_it_at_its_address(broker: EmbeddedBroker) -> None:
    cli = Cli(broker.bootstrap_servers)
    cli.ok("produce", "orders", "--create", stdin="from another process\n")
    assert [record.value for record in broker.consume("orders")] == [b"from another process"]


def test_it_may_be_closed_and_started_again_with_its_data_and_its_port(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path / "data").start()
    address = broker.bootstrap_servers
    broker.produce("orders", ["a"])
    broker.close()
    broker.close()
    assert not broker.is_running
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with broker:
        assert broker.bootstrap_servers == address
        assert [record.value for record in broker.consume("orders")] == [b"a"]
        with pytest.raises(BrokerFailed, match="was started already"):
            broker.start()


def test_no_handler_of_a_signal_and_no_thread_is_left(tmp_path: Path) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    threads = threading.active_count()
    with EmbeddedBroker(tmp_path / "data") as broker:
        broker.produce("orders", ["a"])
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert threading.active_count() == threads


def test_it_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    """As in a notebook."""

    async def cell() -> list[bytes | None]:
        with EmbeddedBroker(tmp_path / "data") as broker:
            broker.produce("orders", ["a"])
            return [record.value for record in broker.consume("orders")]

    assert asyncio.run(cell()) == [b"a"]


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"settings": {"log.retention.hour": 3}}, "did you mean log.retention.hours"),
        ({"settings": {"log.retention.hours": "many"}}, "log.retention.hours"),
        ({"port": 1 << 20}, "is not an address"),
        ({"host": "no such host"}, "no such host"),
    ],
)
def test_a_start_that_fails_says_why_and_leaves_nothing(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    threads = threading.active_count()
    broker = EmbeddedBroker(tmp_path / "data", **options)
    with pytest.raises(StartFailed, match=words):
        broker.start()
    assert not broker.is_running
    assert threading.active_count() == threads
    with EmbeddedBroker(tmp_path / "data") as other:
        other.produce("orders", ["a"])


def test_a_folder_or_a_port_that_is_taken_is_said_and_does_not_hurt_its_owner(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data") as broker:
        with pytest.raises(StartFailed, match="is in use by another broker"):
            EmbeddedBroker(tmp_path / "data").start()
        with (
            pytest.raises(StartFailed, match="is in use by another process"),
            EmbeddedBroker(tmp_path / "other", port=broker.port),
        ):
            pass
        broker.produce("orders", ["a"])
    with EmbeddedBroker(tmp_path / "other"):
        pass


CALLS: dict[str, Callable[[EmbeddedBroker], object]] = {
    "create_topic": lambda broker: broker.create_topic("orders"),
    "topics": lambda broker: broker.topics(),
    "produce": lambda broker: broker.produce("orders", ["a"]),
    "consume": lambda broker: broker.consume("orders"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_broker_that_does_not_run_says_so(tmp_path: Path, call: Callable[[EmbeddedBroker], object]) -> None:
    broker = EmbeddedBroker(tmp_path / "data")
    with pytest.raises(BrokerFailed, match="the broker is not running"):
        call(broker)
    with pytest.raises(BrokerFailed, match="no address before it is started"):
        _ = broker.bootstrap_servers


def test_bad_input_for_each_call(broker: EmbeddedBroker) -> None:
    with pytest.raises(TopicNotCreated):
        broker.create_topic("no topic")
    with pytest.raises(TopicNotCreated):
        broker.create_topic("orders", partitions=0)
    with pytest.raises(TypeError, match="takes a list of records"):
        broker.produce("orders", "a")
    with pytest.raises(BrokerFailed, match="it does not exist"):
        broker.consume("orders")
    with pytest.raises(TypeError, match="the data folder is a NoneType"):
        EmbeddedBroker(None)  # type: ignore[arg-type]


def test_a_failed_fsync_stops_the_broker_and_not_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = EmbeddedBroker(tmp_path / "data").start()
    broker.produce("orders", ["durable"])

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with caplog.at_level(logging.CRITICAL):
        monkeypatch.setattr(disk_file, "_sync_descriptor", fail)
        with pytest.raises(BrokerFailed):
            broker.produce("orders", ["who knows"], timeout_s=3)
        eventually(lambda: broker.failure is not None)
    assert not broker.is_running
    assert "can't go on and stops" in caplog.text
    with pytest.raises(BrokerFailed, match=r"has stopped by itself: .*Input/output error"):
        broker.topics()
    with pytest.raises(BrokerFailed, match="had stopped by itself"):
        broker.close()
    monkeypatch.undo()
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with broker:
        assert broker.consume("orders")[0].value == b"durable"


def test_a_broker_that_nobody_refers_to_is_stopped_and_that_is_said(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path / "data").start()
    with pytest.warns(ResourceWarning, match="was not closed"):
        del broker
        gc.collect()

    def start() -> EmbeddedBroker:
        return EmbeddedBroker(tmp_path / "data").start()

    eventually(start, retry_on=(StartFailed,)).close()


def test_a_program_that_ends_without_a_close_leaves_a_clean_folder(tmp_path: Path) -> None:
    program = """
import os, sys, headpond
broker = headpond.EmbeddedBroker(sys.argv[1]).start()
broker.produce("orders", ["a"])
if os.fork() == 0:
    print(broker.is_running)
    broker.close()
    sys.exit(0)
os.wait()
print(len(broker.consume("orders")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "data")],
        env=headpond_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("False\n1\n", "")
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
