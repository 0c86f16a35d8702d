"""ListGroups (API key 16): v0-5."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, versions


class ListGroupsRequest(Message):
    KEY = 16
    VERSIONS = versions(0, 5)
    FLEXIBLE = 3

    states_filter: Annotated[list[str], "4+"] = []
    types_filter: Annotated[list[str], "5+"] = []


class ListGroupsResponse(Message):
    KEY = 16
    VERSIONS = versions(0, 5)
    FLEXIBLE = 3

    class ListedGroup(Struct):
        group_id: str = ""
        protocol_type: str = ""
        group_state: Annotated[str, "4+ ignorable"] = ""
        group_type: Annotated[str, "5+ ignorable"] = ""

    throttle_time_ms: Annotated[i32, "1+ ignorable"] = 0
    error_code: i16 = 0
    groups: list[ListedGroup] = []
