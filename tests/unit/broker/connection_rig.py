"""Connections of a server whose transports, timers and dispatcher the test holds in its hands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from headpond.broker.net.connection import Connection
from headpond.broker.net.server import Server
from headpond.broker.net.slots import Slot
from headpond.broker.requests.context import ListenerInfo
from headpond.config.broker import NetworkSettings
from headpond.ports import Part
from headpond.protocol.errors import MalformedMessage
from simulation.harness.clock import ManualClock

INFO = ListenerInfo("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)


class Transport:
    """Takes what is written; pauses its writer when told to."""

    def __init__(self, host: str = "10.0.0.1") -> None:
        self.written = bytearray()
        self.closing = False
        self.aborted = False
        self.reading = True
        self.host = host
        self.unsent_bytes = 1_000

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def get_extra_info(self, name: str) -> Any:
        return (self.host, 5_000) if name == "peername" else None

    def write(self, data: bytes) -> None:
        assert not self.closing
        self.written += data

    def writelines(self, parts: list[bytes]) -> None:
        for part in parts:
            self.write(part)

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True

    def pause_reading(self) -> None:
        assert self.reading, "paused twice"
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading, "resumed without a pause"
        self.reading = True

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes


class Listening:
    host, port = "127.0.0.1", 9092

    async def close(self) -> None: ...


class Net:
    """``accepts_early``: somebody comes before the last address is bound."""

    def __init__(self) -> None:
        self.accept: Callable[[], Connection] | None = None
        self.accepts_early = False
        self.early: list[Connection] = []

    async def listen(self, host: str, port: int, factory: Any) -> Listening:
        self.accept = factory
        if self.accepts_early:
            self.early.append(factory())
        return Listening()

    def send(self, transport: Any, parts: Sequence[Part]) -> None:
        transport.writelines(
            [part if isinstance(part, bytes | bytearray | memoryview) else part.view for part in parts]
        )

    def buffer(self, size_bytes: int) -> bytearray:
        return bytearray(size_bytes)


class Script:
    """A dispatcher that does what the frame's third byte says; the rest of the frame is echoed."""

    def __init__(self) -> None:
        self.served: list[bytes] = []
        self.parked: dict[bytes, Slot] = {}
        self.holding: list[Connection] = []
        self.again = 0

    def serve(
        self, connection: Connection, buffer: bytearray, start: int, end: int, key_version: int, correlation_id: int
    ) -> None:
        frame = bytes(buffer[start:end])
        verb, body = frame[8:9], frame[9:]
        self.served.append(body)
        if verb == b"e":
            connection.respond(body)
        elif verb == b"p":
            self.parked[body] = connection.park()
        elif verb == b"h":
            self.parked[body] = connection.park()
            connection.hold()
            self.holding.append(connection)
        elif verb == b"r":
            if self.again:
                connection.respond(body)
            else:
                self.again += 1
                connection.serve_again_later()
                connection.hold()
                self.holding.append(connection)
        elif verb == b"m":
            raise MalformedMessage("not understood")
        else:
            raise KeyError("a bug")


class World:
    def __init__(self, **settings: Any) -> None:
        self.script = Script()
        self.clock = ManualClock()
        self.net = Net()
        network = msgspec.structs.replace(NetworkSettings(listeners=()), **settings)
        self.server = Server(network, self.clock, self.net, self.script)  # type: ignore[arg-type]
        self.server.is_open = True

    async def start(self) -> None:
        await self.server.listen("127.0.0.1", 0, lambda port: INFO)

    def connect(self, host: str = "10.0.0.1") -> tuple[Connection, Transport]:
        connection = Connection(self.server, INFO)
        transport = Transport(host)
        connection.connection_made(transport)  # type: ignore[arg-type]
        return connection, transport


def request(verb: str, body: bytes) -> bytes:
    frame = bytes([0, 99, 0, 0, 0, 0, 0, 1]) + verb.encode() + body
    return len(frame).to_bytes(4, "big") + frame


def receive(connection: Connection, data: bytes) -> None:
    while data:
        buffer = connection.get_buffer(-1)
        count = min(len(buffer), len(data))
        assert count, "a connection that wants nothing must pause its transport"
        buffer[:count] = data[:count]
        data = data[count:]
        connection.buffer_updated(count)


def in_loop(test: Callable[[World], Any], **settings: Any) -> None:
    async def run() -> None:
        world = World(**settings)
        await world.start()
        result = test(world)
        if result is not None:
            await result

    asyncio.run(run())
