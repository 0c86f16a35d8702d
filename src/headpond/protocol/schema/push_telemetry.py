"""PushTelemetry (API key 72): v0."""

from __future__ import annotations

from headpond.protocol.types import ZERO_UUID, Message, Uuid, i8, i16, i32, versions


class PushTelemetryRequest(Message):
    KEY = 72
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    client_instance_id: Uuid = ZERO_UUID
    subscription_id: i32 = 0
    terminating: bool = False
    compression_type: i8 = 0
    metrics: bytes = b""


class PushTelemetryResponse(Message):
    KEY = 72
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
