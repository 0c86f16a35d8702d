"""ExpireDelegationToken (API key 40): v1-2."""

from __future__ import annotations

from headpond.protocol.types import Message, i16, i32, i64, versions


class ExpireDelegationTokenRequest(Message):
    KEY = 40
    VERSIONS = versions(1, 2)
    FLEXIBLE = 2

    hmac: bytes = b""
    expiry_time_period_ms: i64 = 0


class ExpireDelegationTokenResponse(Message):
    KEY = 40
    VERSIONS = versions(1, 2)
    FLEXIBLE = 2

    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0
