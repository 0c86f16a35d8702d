"""SyncGroup (API key 14): v0-5."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, versions


class SyncGroupRequest(Message):
    KEY = 14
    VERSIONS = versions(0, 5)
    FLEXIBLE = 4

    class SyncGroupRequestAssignment(Struct):
        member_id: str = ""
        assignment: bytes = b""

    group_id: str = ""
    generation_id: i32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, "3+"] = None
    protocol_type: Annotated[str | None, "5+ ignorable"] = None
    protocol_name: Annotated[str | None, "5+ ignorable"] = None
    assignments: list[SyncGroupRequestAssignment] = []


class SyncGroupResponse(Message):
    KEY = 14
    VERSIONS = versions(0, 5)
    FLEXIBLE = 4

    throttle_time_ms: Annotated[i32, "1+ ignorable"] = 0
    error_code: i16 = 0
    protocol_type: Annotated[str | None, "5+ ignorable"] = None
    protocol_name: Annotated[str | None, "5+ ignorable"] = None
    assignment: bytes = b""
