"""DescribeGroups (API key 15): v0-6."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, versions


class DescribeGroupsRequest(Message):
    KEY = 15
    VERSIONS = versions(0, 6)
    FLEXIBLE = 5

    groups: list[str] = []
    include_authorized_operations: Annotated[bool, "3+"] = False


class DescribeGroupsResponse(Message):
    KEY = 15
    VERSIONS = versions(0, 6)
    FLEXIBLE = 5

    class DescribedGroup(Struct):
        error_code: i16 = 0
        error_message: Annotated[str | None, "6+"] = None
        group_id: str = ""
        group_state: str = ""
        protocol_type: str = ""
        protocol_data: str = ""
        members: list[DescribeGroupsResponse.DescribedGroupMember] = []
        authorized_operations: Annotated[i32, "3+"] = -2_147_483_648

    class DescribedGroupMember(Struct):
        member_id: str = ""
        group_instance_id: Annotated[str | None, "4+ ignorable"] = None
        client_id: str = ""
        client_host: str = ""
        member_metadata: bytes = b""
        member_assignment: bytes = b""

    throttle_time_ms: Annotated[i32, "1+ ignorable"] = 0
    groups: list[DescribedGroup] = []
