"""What a service manager is told, and that nothing comes of it when it can't be."""

from __future__ import annotations

import asyncio
import socket
import uuid
from pathlib import Path

import pytest

from headpond.runtime import service_manager


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_each_line_arrives_in_one_datagram(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = str(tmp_path / "notify") if kind == "path" else f"@headpond-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0", 1) if kind == "abstract" else name)
        manager.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        service_manager.tell(service_manager.READY, "STATUS=two\nlines")
        assert manager.recv(1024) == b"READY=1\nSTATUS=two lines"


@pytest.mark.parametrize(
    "name",
    [None, "", "vsock:2:1234", "relative", "@", "/nowhere/notify", "/" + "x" * 300, "@" + "x" * 300, "/tmp", "@nobody"],
)
def test_a_socket_that_can_t_be_reached_is_no_reason_to_fail(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    if name is not None:
        monkeypatch.setenv("NOTIFY_SOCKET", name)
    assert service_manager.tell(service_manager.READY), "and none to try again"


def test_a_manager_whose_queue_is_full_is_told_as_soon_as_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        filled = fill()
        pauses: list[float] = []

        async def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                assert [manager.recv(1024) for _ in range(filled)] == [b"STATUS=busy"] * filled

        asyncio.run(service_manager.tell_in_the_end(service_manager.READY, sleep=pause, is_over=lambda: False))
        assert len(pauses) == 3 and manager.recv(1024) == b"READY=1"


def test_what_is_no_longer_true_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        filled, is_over = fill(), False

        async def pause(seconds: float) -> None:
            nonlocal is_over
            is_over = True
            for _ in range(filled):
                manager.recv(1024)

        asyncio.run(service_manager.tell_in_the_end(service_manager.READY, sleep=pause, is_over=lambda: is_over))
        with pytest.raises(BlockingIOError):
            manager.recv(1024)


def fill() -> int:
    """How many messages fit into the manager's queue, which is full now."""
    return next(count for count in range(10_000) if not service_manager.tell("STATUS=busy"))


def test_a_manager_that_does_not_read_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        for _ in range(10_000):  # far more than a socket holds
            service_manager.tell(service_manager.READY)
