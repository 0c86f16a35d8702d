"""A stop that is asked for while the broker starts: it ends at once, whatever its workers are at, and marks nothing as
clean. Recovery that never ends stands for one of large logs."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.batches import build
from support.broker import BrokerProcess, headpond_environment
from support.verbs import append, create_topic, describe_topic, end_offset
from support.waiting import DEADLINE_S, eventually
from support.wire import Wire

STUCK = """
import asyncio, pathlib, sys
reached, where = pathlib.Path(sys.argv[1]), sys.argv[2]
del sys.argv[1:3]

def busy(*arguments, **options):
    reached.touch()
    while True:
        sum(range(1_000))

async def waits(*arguments, **options):
    reached.touch()
    await asyncio.sleep(3_600)

if where == "recovery":
    from headpond.storage.recovery import many
    many.recover = busy
elif where == "inspection":
    from headpond.broker.start import adoption
    adoption.look_into = busy
else:
    from headpond.broker import app
    app.join_cluster = waits
from headpond.cli.main import main
sys.exit(main())
"""


@pytest.fixture
def broker(make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """Killed, with a topic: its next start recovers."""
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        append(wire, create_topic(wire, "orders"), build([b"1"]))
    broker.kill()
    return broker


@contextmanager
def stuck(where: str, folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that has come as far as ``where`` and goes no further."""
    reached = folder / "reached"
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, str(reached), where, *arguments],
        env=headpond_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            eventually(lambda: reached.exists() or process.poll() is not None, what=where)
            assert process.poll() is None, process.communicate()
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("where", ["recovery", "registration"])
@pytest.mark.parametrize(
    "signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGTERM, signal.SIGTERM]], ids=["term", "int", "twice"]
)
def test_a_broker_that_is_starting_stops_when_it_is_told_to(
    broker: BrokerProcess, tmp_path: Path, where: str, signals: list[signal.Signals]
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with stuck(where, tmp_path, "serve", "--listen", address, "--data-dir", str(broker.data_dir)) as process:
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=DEADLINE_S):  # it listens, and is not ready
            for each in signals:
                process.send_signal(each)
            out, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, out) == (0, "")
    assert err.count("stopped before it was ready") == 1 and "Traceback" not in err
    assert not (broker.data_dir / ".kafka_cleanshutdown").exists()
    with Wire(broker.start().bootstrap_servers) as wire:
        assert end_offset(wire, describe_topic(wire, "orders")) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"])
def test_an_adoption_stops_in_the_middle_of_a_folder_and_can_be_done_again(
    broker: BrokerProcess, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    for file in broker.data_dir.glob("metadata.sqlite*"):
        file.unlink()
    with stuck("inspection", tmp_path, "adopt", "--data-dir", str(broker.data_dir)) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, out) == (code, "") and "Traceback" not in err
    done = subprocess.run(
        [sys.executable, "-m", "headpond", "adopt", "--data-dir", str(broker.data_dir)],
        env=headpond_environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
