"""Heartbeat (API key 12): v0-4."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, i16, i32, versions


class HeartbeatRequest(Message):
    KEY = 12
    VERSIONS = versions(0, 4)
    FLEXIBLE = 4

    group_id: str = ""
    generation_id: i32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, "3+"] = None


class HeartbeatResponse(Message):
    KEY = 12
    VERSIONS = versions(0, 4)
    FLEXIBLE = 4

    throttle_time_ms: Annotated[i32, "1+ ignorable"] = 0
    error_code: i16 = 0
