"""A broker with connections, requests of any API to send through them, and the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from headpond.broker.net.connection import Connection
from headpond.broker.net.server import Server
from headpond.broker.requests.dispatch import Dispatch
from headpond.config.broker import NetworkSettings
from headpond.protocol.apis import APIS, request_encoder
from headpond.protocol.header import encode_request_header
from headpond.telemetry.requests import RequestMeters
from support.wire import API_KEYS
from unit.broker.connection_rig import INFO, Net, Transport
from unit.broker.coordinator_cases import GROUP, Coordinators, with_coordinators

TURNS_MAX = 200_000


class Served:
    """A broker with connections."""

    def __init__(self, broker: Coordinators) -> None:
        self.broker = broker.broker
        self.clock = broker.cluster.clock
        self.meters = RequestMeters()
        dispatch = Dispatch(self.broker, broker.cluster.tasks, self.meters)
        self.server = Server(NetworkSettings(listeners=()), self.clock, Net(), dispatch)  # type: ignore[arg-type]
        self.server.is_open = True

    def connect(self) -> tuple[Connection, Transport]:
        connection, transport = Connection(self.server, INFO), Transport()
        connection.connection_made(transport)  # type: ignore[arg-type]
        return connection, transport

    async def until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(TURNS_MAX):
            if is_so():
                return
            await asyncio.sleep(0)
        raise AssertionError("it never was")


def served(scenario: Callable[[Served], Awaitable[None]]) -> None:
    async def run(broker: Coordinators) -> None:
        await scenario(Served(broker))

    with_coordinators(run)


def frame(api: str, version: int, correlation_id: int = 1, **fields: Any) -> bytes:
    key = API_KEYS[api]
    body = request_encoder(key, version)(APIS[key].request(**fields))
    whole = encode_request_header(key, version, correlation_id, "c") + body
    return len(whole).to_bytes(4, "big") + whole


def describing(groups: int, correlation_id: int = 1, name: str = GROUP) -> bytes:
    return frame("DescribeGroups", 0, correlation_id, groups=[f"{name}{number}" for number in range(groups)])


def answers(transport: Transport) -> list[tuple[int, bytes]]:
    """Correlation ids and bodies, of answers that are whole."""
    data, found = bytes(transport.written), []
    while data:
        size_bytes = int.from_bytes(data[:4], "big")
        assert len(data) >= 4 + size_bytes
        found.append((int.from_bytes(data[4:8], "big"), data[8 : 4 + size_bytes]))
        data = data[4 + size_bytes :]
    return found
