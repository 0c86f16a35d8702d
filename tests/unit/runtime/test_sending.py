"""What files have lent reaches its peer whole and in order, past a transport or through it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from headpond.ports import Part
from headpond.runtime import disk_file, sending
from headpond.runtime.disk_file import DiskFile
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.network import TcpNetwork
from unit.runtime.test_lending import can_lend

CONTENT = bytes(range(251)) * 20_000  # 5 MB: more than a socket takes at once

pytestmark = pytest.mark.skipif(not can_lend(), reason="this system can't tell what is in memory")

uvloop = pytest.importorskip("uvloop")
LOOPS: list[Any] = [
    pytest.param(uvloop.new_event_loop, id="uvloop"),
    pytest.param(
        asyncio.new_event_loop,
        id="asyncio",
        marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="before Python 3.12 nothing is lent to asyncio"),
    ),
]


class Peer(asyncio.Protocol):
    """The side that sends."""

    def __init__(self) -> None:
        self.made = asyncio.Event()
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.made.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Iterator[Callable[[Callable[[], Awaitable[None]]], None]]:
    def in_loop(scenario: Callable[[], Any]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(scenario(), 30))

    yield in_loop


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DiskFile]:
    monkeypatch.setattr(disk_file, "_windows", None)
    monkeypatch.setattr(disk_file, "_can_lend", True)
    opened = DiskFileSystem().open(str(tmp_path / "file"), create=True)
    opened.write(CONTENT)
    yield opened
    opened.close()


@contextlib.asynccontextmanager
async def connected(host: str = "127.0.0.1") -> AsyncIterator[tuple[Peer, socket.socket]]:
    """A sender, and the socket at the other end, which the test reads."""
    peer = Peer()
    listener = await TcpNetwork().listen(host, 0, lambda: peer)
    reader = socket.socket()
    reader.setblocking(False)
    await asyncio.get_running_loop().sock_connect(reader, ("127.0.0.1", listener.port))
    await peer.made.wait()
    try:
        yield peer, reader
    finally:
        peer.transport.abort()
        reader.close()
        await listener.close()


async def read(reader: socket.socket, size: int) -> bytes:
    loop, got = asyncio.get_running_loop(), bytearray()
    while len(got) < size:
        chunk = await loop.sock_recv(reader, size - len(got))
        if not chunk:
            break
        got += chunk
    return bytes(got)


def lent(file: DiskFile, position: int, size: int) -> Part:
    found = file.lend_nowait(position, size)
    assert found is not None
    return found


def test_all_parts_arrive_in_order_however_little_the_socket_takes_at_once(run: Any, file: DiskFile) -> None:
    async def scenario() -> None:
        async with connected() as (peer, reader):
            parts = [b"head", lent(file, 7, 3_000_000), bytearray(b"between"), lent(file, 3, 5_000_000), b"end"]
            sending.send(peer.transport, parts)
            assert peer.transport.get_write_buffer_size() > 0, "8 MB fit into no socket buffer"
            sending.send(peer.transport, [b"next", lent(file, 0, 100_000)])
            expected = (
                b"head"
                + CONTENT[7:3_000_007]
                + b"between"
                + CONTENT[3:5_000_003]
                + b"end"
                + b"next"
                + CONTENT[:100_000]
            )
            assert await read(reader, len(expected)) == expected

    run(scenario)


def test_what_the_transport_still_has_goes_first_though_the_socket_has_room(run: Any, file: DiskFile) -> None:
    async def scenario() -> None:
        async with connected() as (peer, reader):
            sending.send(peer.transport, [b"first", lent(file, 0, 5_000_000), CONTENT])
            assert peer.transport.get_write_buffer_size() > 0
            got = bytearray()
            with contextlib.suppress(BlockingIOError):  # no turn of the loop: the transport knows nothing of the room
                while True:
                    got += reader.recv(1_000_000)
            sending.send(peer.transport, [b"then", lent(file, 0, 70_000)])
            peer.transport.write(b"last")
            expected = b"first" + CONTENT[:5_000_000] + CONTENT + b"then" + CONTENT[:70_000] + b"last"
            assert bytes(got) + await read(reader, len(expected) - len(got)) == expected

    run(scenario)


def test_what_the_transport_was_given_in_the_same_turn_goes_first(run: Any, file: DiskFile) -> None:
    async def scenario() -> None:
        async with connected() as (peer, reader):
            peer.transport.write(b"first")
            sending.send(peer.transport, [b"then", lent(file, 0, 70_000)])
            peer.transport.write(b"last")
            assert await read(reader, 70_013) == b"firstthen" + CONTENT[:70_000] + b"last"

    run(scenario)


def test_a_response_that_fits_leaves_at_once_and_past_the_transport(
    run: Any, file: DiskFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with connected() as (peer, reader):
            part = lent(file, 11, 70_000)
            monkeypatch.setattr(sending, "_as_buffers", lambda parts: pytest.fail("a view was asked for"))
            sending.send(peer.transport, [b"head", part, b"end"])
            assert peer.transport.get_write_buffer_size() == 0
            assert await read(reader, 70_007) == b"head" + CONTENT[11:70_011] + b"end"

    run(scenario)


def test_a_file_that_was_closed_and_removed_meanwhile_is_sent_all_the_same(
    run: Any, file: DiskFile, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with connected() as (peer, reader):
            part = lent(file, 5, 200_000)
            file.close()
            (tmp_path / "file").unlink()
            other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)  # gets the number of its descriptor
            os.write(other, b"x" * 300_000)
            sending.send(peer.transport, [b"head", part])
            assert await read(reader, 200_004) == b"head" + CONTENT[5:200_005]
            os.close(other)

    run(scenario)


def test_bytes_that_were_cut_off_end_the_connection(run: Any, file: DiskFile, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with connected() as (peer, reader):
            part = lent(file, 0, 200_000)
            os.truncate(tmp_path / "file", 0)
            sending.send(peer.transport, [b"head", part])
            await peer.lost.wait()
            assert CONTENT[:4_096] not in await read(reader, 200_004)

    run(scenario)


def test_a_peer_that_has_gone_costs_its_connection_and_raises_nothing(run: Any, file: DiskFile) -> None:
    async def scenario() -> None:
        async with connected() as (peer, reader):
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # its end is a reset
            reader.close()
            sending.send(peer.transport, [b"head", lent(file, 0, 200_000)])
            await peer.lost.wait()

    run(scenario)


class Encrypting:
    """A transport as TLS has it: its socket must never be written to by others."""

    def __init__(self) -> None:
        self.given: list[bytes] = []

    def get_extra_info(self, name: str) -> Any:
        return self

    def get_write_buffer_size(self) -> int:
        return 0

    def fileno(self) -> int:
        pytest.fail("plain text into an encrypted connection")

    def writelines(self, parts: list[Any]) -> None:
        self.given += map(bytes, parts)


def test_a_transport_that_encrypts_is_given_everything(file: DiskFile) -> None:
    transport = Encrypting()
    sending.send(transport, [b"head", lent(file, 0, 100_000)])  # type: ignore[arg-type]
    assert transport.given == [b"head", CONTENT[:100_000]]


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="Linux only")
@pytest.mark.parametrize(("host", "is_ours"), [("127.0.0.1", True), ("0.0.0.0", False)])
def test_packets_are_spaced_for_a_network_and_not_within_the_machine(run: Any, host: str, is_ours: bool) -> None:
    with socket.socket() as plain:
        systems_own = plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)

    async def scenario() -> None:
        async with connected(host) as (peer, _):
            found = peer.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            assert found.rstrip(b"\0") == (b"reno" if is_ours else systems_own.rstrip(b"\0"))

    run(scenario)
