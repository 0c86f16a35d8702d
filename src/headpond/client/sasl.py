"""What is said in a SASL exchange, without a connection: bytes in, bytes out.

    exchange = begin(sasl, random)
    challenge = send(exchange.first())
    while (answer := exchange.answer(challenge)) is not None:      # None: both sides are content
        challenge = send(answer)

Raises ``Distrusted`` where the broker does not prove what it has to.
"""

from __future__ import annotations

from typing import Protocol

from headpond.client.security import Sasl
from headpond.ports import Random

_SEPARATOR = b"\x01"


class Distrusted(Exception):
    """The peer's part of the exchange is wrong. The message holds no secret."""


class Exchange(Protocol):
    def first(self) -> bytes: ...

    def answer(self, challenge: bytes) -> bytes | None: ...


def begin(sasl: Sasl, random: Random) -> Exchange:
    if sasl.mechanism == "PLAIN":
        return Plain(sasl)
    if sasl.mechanism == "OAUTHBEARER":
        return OAuthBearer(sasl)
    from headpond.client.scram import NONCE_BYTES, Scram  # hashes are for those who need them

    return Scram(sasl, random.random_bytes(NONCE_BYTES))


class Plain:
    """RFC 4616: the password itself, which is why it belongs inside of TLS."""

    def __init__(self, sasl: Sasl) -> None:
        self._sasl = sasl

    def first(self) -> bytes:
        return f"\0{self._sasl.username}\0{self._sasl.password}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        return None


class OAuthBearer:
    """RFC 7628, with a token that somebody else has fetched."""

    def __init__(self, sasl: Sasl) -> None:
        self._sasl = sasl

    def first(self) -> bytes:
        pairs = [("auth", f"Bearer {self._sasl.token}"), *self._sasl.extensions]
        return (
            b"n,,"
            + _SEPARATOR
            + b"".join(f"{name}={value}".encode() + _SEPARATOR for name, value in pairs)
            + (_SEPARATOR)
        )

    def answer(self, challenge: bytes) -> bytes | None:
        """A challenge is a refusal, to which one more message is owed; the broker's error comes then."""
        return _SEPARATOR if challenge else None
