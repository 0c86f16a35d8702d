"""JoinGroup (API key 11): v0-9."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, versions


class JoinGroupRequest(Message):
    KEY = 11
    VERSIONS = versions(0, 9)
    FLEXIBLE = 6

    class JoinGroupRequestProtocol(Struct):
        name: str = ""
        metadata: bytes = b""

    group_id: str = ""
    session_timeout_ms: i32 = 0
    rebalance_timeout_ms: Annotated[i32, "1+ ignorable"] = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, "5+"] = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[str | None, "8+ ignorable"] = None


class JoinGroupResponse(Message):
    KEY = 11
    VERSIONS = versions(0, 9)
    FLEXIBLE = 6

    class JoinGroupResponseMember(Struct):
        member_id: str = ""
        group_instance_id: Annotated[str | None, "5+ ignorable"] = None
        metadata: bytes = b""

    throttle_time_ms: Annotated[i32, "2+ ignorable"] = 0
    error_code: i16 = 0
    generation_id: i32 = -1
    protocol_type: Annotated[str | None, "7+ ignorable"] = None
    protocol_name: Annotated[str | None, "null 7+"] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, "9+"] = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []
