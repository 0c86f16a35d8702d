"""SaslHandshake (API key 17): v0-1."""

from __future__ import annotations

from headpond.protocol.types import Message, i16, versions


class SaslHandshakeRequest(Message):
    KEY = 17
    VERSIONS = versions(0, 1)

    mechanism: str = ""


class SaslHandshakeResponse(Message):
    KEY = 17
    VERSIONS = versions(0, 1)

    error_code: i16 = 0
    mechanisms: list[str] = []
