"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, 7677): the password never travels, and the broker proves that it knows it.

As in Kafka, names and passwords are not normalised (no SASLprep), and there is no channel binding.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from headpond.client.sasl import Distrusted
from headpond.client.security import Sasl

NONCE_BYTES = 24
ITERATIONS_MIN = 4_096
"""What the RFC and Kafka ask for: with fewer, whoever pretends to be the broker could guess the password."""
ITERATIONS_MAX = 1_000_000
"""Kafka's brokers allow 16,384. A broker must not keep us busy for minutes."""

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_HEADER = "n,,"


class Scram:
    def __init__(self, sasl: Sasl, nonce: bytes) -> None:
        self._sasl = sasl
        self._hash = _HASHES[sasl.mechanism]
        # Printable, and without a comma.
        self._nonce = base64.urlsafe_b64encode(nonce).decode()
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        return (_HEADER + self._first_bare()).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if self._server_signature is None:
            return self._final(challenge)
        self._check_signature(challenge)
        return None

    def _first_bare(self) -> str:
        name = self._sasl.username.replace("=", "=3D").replace(",", "=2C")
        return f"n={name},r={self._nonce}"

    def _final(self, challenge: bytes) -> bytes:
        fields = _fields(challenge)
        nonce, salt, iterations = self._checked(fields)
        without_proof = f"c={base64.b64encode(_HEADER.encode()).decode()},r={nonce}"
        signed = f"{self._first_bare()},{challenge.decode()},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._sasl.password.encode(), salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _checked(self, fields: dict[str, str]) -> tuple[str, bytes, int]:
        if "e" in fields:
            raise Distrusted(f"it says {fields['e']}")
        if "m" in fields:
            raise Distrusted("it asks for an extension of SCRAM that nobody knows")
        nonce = fields.get("r", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise Distrusted("its nonce does not go on from ours")
        salt = _base64(fields.get("s", ""))
        text = fields.get("i", "")
        iterations = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if not salt or not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise Distrusted(f"it wants {text or 'no'} iterations; {ITERATIONS_MIN} to {ITERATIONS_MAX} make sense")
        return nonce, salt, iterations

    def _check_signature(self, challenge: bytes) -> None:
        fields = _fields(challenge)
        if "e" in fields:
            raise Distrusted(f"it says {fields['e']}")
        assert self._server_signature is not None
        if not hmac.compare_digest(_base64(fields.get("v", "")), self._server_signature):
            raise Distrusted("it does not prove that it knows the password, and may not be who it says it is")

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash)


def _fields(message: bytes) -> dict[str, str]:
    """``r=...,s=...,i=4096``."""
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise Distrusted("its message is no SCRAM") from None
    return {part[0]: part[2:] for part in parts if part[1:2] == "="}


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise Distrusted("its message is no SCRAM") from None
