"""LeaveGroup (API key 13): v0-5."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, versions


class LeaveGroupRequest(Message):
    KEY = 13
    VERSIONS = versions(0, 5)
    FLEXIBLE = 4

    class MemberIdentity(Struct):
        member_id: str = ""
        group_instance_id: str | None = None
        reason: Annotated[str | None, "5+ ignorable"] = None

    group_id: str = ""
    member_id: Annotated[str, "0-2"] = ""
    members: Annotated[list[MemberIdentity], "3+"] = []


class LeaveGroupResponse(Message):
    KEY = 13
    VERSIONS = versions(0, 5)
    FLEXIBLE = 4

    class MemberResponse(Struct):
        member_id: str = ""
        group_instance_id: str | None = ""
        error_code: i16 = 0

    throttle_time_ms: Annotated[i32, "1+ ignorable"] = 0
    error_code: i16 = 0
    members: Annotated[list[MemberResponse], "3+"] = []
