"""SaslAuthenticate (API key 36): v0-2."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, i16, i64, versions


class SaslAuthenticateRequest(Message):
    KEY = 36
    VERSIONS = versions(0, 2)
    FLEXIBLE = 2

    auth_bytes: bytes = b""


class SaslAuthenticateResponse(Message):
    KEY = 36
    VERSIONS = versions(0, 2)
    FLEXIBLE = 2

    error_code: i16 = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[i64, "1+ ignorable"] = 0
