"""Under a service manager: READY=1 when the port answers, STOPPING=1 when it is told to stop (``sd_notify``)."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headpond.protocol.schema.api_versions import ApiVersionsRequest
from support.broker import BrokerProcess, StartFailed
from support.waiting import DEADLINE_S
from support.wire import Wire


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """(what NOTIFY_SOCKET says, the socket there)"""
    name = str(tmp_path / "notify") if request.param == "path" else f"@headpond-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(name.replace("@", "\0", 1) if request.param == "abstract" else name)
        receiver.settimeout(DEADLINE_S)
        yield name, receiver


def test_it_is_told_ready_when_the_port_answers_and_stopping_when_it_stops(
    manager: tuple[str, socket.socket], make_broker: Callable[..., BrokerProcess]
) -> None:
    name, receiver = manager
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    broker = make_broker(port=port, env={"NOTIFY_SOCKET": name}).start(wait_ready=False)
    ready = receiver.recv(4096).decode().splitlines()
    with Wire(f"127.0.0.1:{port}") as wire:  # nothing else was waited for
        assert wire.call(ApiVersionsRequest(), 0).error_code == 0
    assert ready == ["READY=1", f"STATUS=listening on 127.0.0.1:{port}"]
    assert "listening on" in broker.stdout(), "said before, so that what follows READY=1 in a log is not the banner"
    broker.stop()
    assert receiver.recv(4096) == b"STOPPING=1"


def test_a_broker_that_can_t_start_never_says_that_it_is_ready(
    manager: tuple[str, socket.socket], make_broker: Callable[..., BrokerProcess], fresh_broker: BrokerProcess
) -> None:
    name, receiver = manager
    second = make_broker("second", env={"NOTIFY_SOCKET": name})
    second.data_dir = fresh_broker.data_dir
    with pytest.raises(StartFailed):
        second.start()
    receiver.setblocking(False)
    with pytest.raises(BlockingIOError):
        receiver.recv(4096)


def test_a_manager_that_is_gone_or_does_not_read_stops_no_broker(
    tmp_path: Path, make_broker: Callable[..., BrokerProcess]
) -> None:
    broker = make_broker(env={"NOTIFY_SOCKET": str(tmp_path / "gone")}).start()
    broker.stop()
    assert "Traceback" not in broker.logs()
