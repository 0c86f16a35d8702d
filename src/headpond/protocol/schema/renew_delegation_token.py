"""RenewDelegationToken (API key 39): v1-2."""

from __future__ import annotations

from headpond.protocol.types import Message, i16, i32, i64, versions


class RenewDelegationTokenRequest(Message):
    KEY = 39
    VERSIONS = versions(1, 2)
    FLEXIBLE = 2

    hmac: bytes = b""
    renew_period_ms: i64 = 0


class RenewDelegationTokenResponse(Message):
    KEY = 39
    VERSIONS = versions(1, 2)
    FLEXIBLE = 2

    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0
