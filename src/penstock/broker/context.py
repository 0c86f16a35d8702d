"""What a handler knows about the request beyond its body."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from penstock.broker.services import Broker
    from penstock.storage.looks import Asker


class ListenerInfo(NamedTuple):
    """The listener that a connection came in on; Metadata answers with its advertised address."""

    name: str
    protocol: str
    advertised_host: str
    advertised_port: int


class Principal(NamedTuple):
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")


class Context(msgspec.Struct, gc=False):
    """One request's surroundings; made per request for cold APIs, reused by the hot ones of a connection."""

    broker: Broker
    listener: ListenerInfo
    version: int
    client_id: str | None = None
    principal: Principal = ANONYMOUS
    peer_host: str = ""
    asker: Asker | None = None
    """The connection: whose turn it is where requests wait for one another."""
