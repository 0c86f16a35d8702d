"""How a client proves who it is, and makes sure of whom it talks to: plain values. Their repr shows no secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.ports import Tls

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


@dataclass(frozen=True, slots=True)
class Sasl:
    mechanism: Mechanism
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    """Of OAUTHBEARER, which has no name and no password."""
    extensions: tuple[tuple[str, str], ...] = ()
    """Of OAUTHBEARER, too (KIP-342)."""


@dataclass(frozen=True, slots=True)
class Security:
    tls: Tls | None = None
    sasl: Sasl | None = None


PLAINTEXT = Security()
