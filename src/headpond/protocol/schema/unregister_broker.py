"""UnregisterBroker (API key 64): v0."""

from __future__ import annotations

from headpond.protocol.types import Message, i16, i32, versions


class UnregisterBrokerRequest(Message):
    KEY = 64
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    broker_id: i32 = 0


class UnregisterBrokerResponse(Message):
    KEY = 64
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
