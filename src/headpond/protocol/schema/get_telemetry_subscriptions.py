"""GetTelemetrySubscriptions (API key 71): v0."""

from __future__ import annotations

from headpond.protocol.types import ZERO_UUID, Message, Uuid, i8, i16, i32, versions


class GetTelemetrySubscriptionsRequest(Message):
    KEY = 71
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    client_instance_id: Uuid = ZERO_UUID


class GetTelemetrySubscriptionsResponse(Message):
    KEY = 71
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: i32 = 0
    accepted_compression_types: list[i8] = []
    push_interval_ms: i32 = 0
    telemetry_max_bytes: i32 = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = []
