"""TCP on the running loop, uvloop's or asyncio's.

Promises    ``listen`` binds every address that the host name stands for, all on one port, and tells which; a port in
            use is a ``PortInUse`` that says so. Small answers leave at once: both loops set TCP_NODELAY. Addresses of
            IPv6 are written with or without brackets. Listeners on loopback addresses do not space their packets.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Sequence

from headpond.ports import Part, Tls
from headpond.runtime import sending
from headpond.runtime.memory import untouched

# Kafka's socket.listen.backlog.size is 50; a thousand clients that reconnect after a restart need more.
BACKLOG_DEFAULT = 1_024
# A free port on one of a host's addresses may be taken on another one: then any other will do.
_FREE_PORT_ATTEMPTS_MAX = 10

_CONGESTION: int | None = getattr(socket, "TCP_CONGESTION", None)
_Factory = Callable[[], asyncio.BaseProtocol]


class PortInUse(OSError):
    """Somebody else listens there."""


class TcpListener:
    """``ports.Listener``."""

    def __init__(self, servers: list[asyncio.Server], host: str, port: int) -> None:
        self._servers = servers
        self.host = host
        self.port = port

    async def close(self) -> None:
        """Stop accepting. Connections that are open stay: they belong to those who made them."""
        for server in self._servers:
            server.close()
        # No wait_closed: since Python 3.12 it waits for the end of every connection, too.


class TcpNetwork:
    """``ports.Network`` of the machine."""

    def __init__(self, *, backlog: int = BACKLOG_DEFAULT) -> None:
        self._backlog = backlog

    async def listen(self, host: str, port: int, factory: _Factory) -> TcpListener:
        try:
            addresses = await _addresses(_without_brackets(host))
        except OSError as error:
            raise OSError(error.errno, f"can't listen on {host}:{port}: {error.strerror}") from error
        for attempt in range(_FREE_PORT_ATTEMPTS_MAX):
            try:
                servers = await self._bind(addresses, port, factory)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise OSError(error.errno, f"can't listen on {host}:{port}: {error.strerror}") from error
                if port != 0 or attempt + 1 == _FREE_PORT_ATTEMPTS_MAX:
                    raise PortInUse(errno.EADDRINUSE, f"{host}:{port} is in use by another process") from error
            else:
                return TcpListener(servers, host, _port_of(servers[0]))
        raise AssertionError("the last attempt returns or raises")

    async def connect(
        self, host: str, port: int, factory: _Factory, *, tls: Tls | None = None
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        loop, host = asyncio.get_running_loop(), _without_brackets(host)
        if tls is None:
            return await loop.create_connection(factory, host, port)
        from headpond.runtime.tls import context_of  # OpenSSL is for those who need it

        return await loop.create_connection(factory, host, port, ssl=context_of(tls), server_hostname=host)

    def send(self, transport: asyncio.WriteTransport, parts: Sequence[Part]) -> None:
        sending.send(transport, parts)

    def buffer(self, size_bytes: int) -> bytearray:
        return untouched(size_bytes)

    async def _bind(self, addresses: list[str], port: int, factory: _Factory) -> list[asyncio.Server]:
        """One server for each address that this machine has; the first one's port for all."""
        loop = asyncio.get_running_loop()
        servers: list[asyncio.Server] = []
        absent: OSError | None = None
        try:
            for address in addresses:
                try:
                    server = await loop.create_server(factory, address, port, backlog=self._backlog, reuse_address=True)
                except OSError as error:
                    if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                        raise
                    absent = error  # "localhost" names ::1 on machines without IPv6, too
                else:
                    servers.append(server)
                    _do_not_pace(server, address)
                    port = port or _port_of(server)
            if not servers:
                assert absent is not None
                raise absent
        except BaseException:
            for server in servers:
                server.close()
            raise
        return servers


async def _addresses(host: str) -> list[str]:
    """What a name stands for, each once, in the resolver's order; no name stands for every address of the machine."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return list(dict.fromkeys(str(facts[4][0]) for facts in found))


def _do_not_pace(server: asyncio.Server, address: str) -> None:
    """BBR, where it is the default, measures what the network can carry and spaces packets accordingly. Within one
    machine there is none: it measures how busy the peer is (docs/decisions/0004). Connections have what their listening
    socket has."""
    if _CONGESTION is not None and (address.startswith("127.") or address == "::1"):
        for listening in server.sockets:
            with contextlib.suppress(OSError):  # a system may forbid it: then it is as it was
                listening.setsockopt(socket.IPPROTO_TCP, _CONGESTION, b"reno")  # every Linux has it


def _port_of(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


def _without_brackets(host: str) -> str:
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host
