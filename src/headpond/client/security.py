"""How a client proves who it is, and makes sure of whom it talks to: plain values. Their repr shows no secret."""

from __future__ import annotations

from typing import Literal, NamedTuple

from headpond.ports import Tls

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


class Sasl(NamedTuple):
    mechanism: Mechanism
    username: str = ""
    password: str = ""
    token: str = ""
    """Of OAUTHBEARER, which has no name and no password."""
    extensions: tuple[tuple[str, str], ...] = ()
    """Of OAUTHBEARER, too (KIP-342)."""

    def __repr__(self) -> str:
        return f"Sasl({self.mechanism}, {self.username!r})"


class Security(NamedTuple):
    tls: Tls | None = None
    sasl: Sasl | None = None


PLAINTEXT = Security()
