"""The unit tests' brokers in memory, behind sockets: for Spark, whose tasks are other processes. Several nodes, and
leaders that move when a test says so."""

from __future__ import annotations

import asyncio
from typing import Any, Self, cast

from headpond.protocol.schema.metadata import MetadataResponse
from headpond.runtime.clock import SystemClock
from headpond.runtime.loop_thread import LoopThread
from unit.client.memory_cluster import MemoryCluster, ServerSide

HOST = "127.0.0.1"


class TcpCluster(MemoryCluster):
    """As a context: its nodes listen. Everything that they do is done on one thread, ``faults`` included."""

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes)
        self.clock = SystemClock()  # type: ignore[assignment]
        self._loop = LoopThread("brokers-in-memory")
        self._servers: dict[int, asyncio.Server] = {}
        self._ports: dict[int, int] = {}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self._ports.values())

    def __enter__(self) -> Self:
        self._loop.call(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call(self._end())
        self._loop.close()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for node in self.nodes:
            server = await loop.create_server(lambda node=node: Accepted(self, node), HOST, 0)  # type: ignore[misc]
            self._servers[node] = server
            self._ports[node] = server.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        for node in self.nodes:
            self.stop(node)

    def stop(self, node: int) -> None:
        self._servers[node].close()
        super().stop(node)

    def _metadata(self, node: int, request: Any, version: int) -> MetadataResponse:
        answer = super()._metadata(node, request, version)
        for broker in answer.brokers:
            broker.host, broker.port = HOST, self._ports[broker.node_id]
        return answer


class Accepted(asyncio.Protocol):
    """Hands what comes through a socket to the broker's side of the connection."""

    def __init__(self, cluster: TcpCluster, node: int) -> None:
        self._cluster, self._node = cluster, node
        self._side: OverTcp | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._side = OverTcp(self._cluster, self._node, cast(asyncio.Transport, transport))
        self._cluster.connections.append(self._side)

    def data_received(self, data: bytes) -> None:
        assert self._side is not None
        self._side.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        assert self._side is not None
        self._side.is_open = False


class OverTcp(ServerSide):
    def __init__(self, cluster: TcpCluster, node: int, transport: asyncio.Transport) -> None:
        super().__init__(cluster, node, None)
        self._transport = transport

    def deliver(self, data: bytes) -> None:
        if self.is_open:
            self._transport.write(data)

    def drop(self) -> None:
        self.is_open = False
        self._transport.abort()
