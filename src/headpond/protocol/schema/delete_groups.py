"""DeleteGroups (API key 42): v0-2."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i16, i32, versions


class DeleteGroupsRequest(Message):
    KEY = 42
    VERSIONS = versions(0, 2)
    FLEXIBLE = 2

    groups_names: list[str] = []


class DeleteGroupsResponse(Message):
    KEY = 42
    VERSIONS = versions(0, 2)
    FLEXIBLE = 2

    class DeletableGroupResult(Struct):
        group_id: str = ""
        error_code: i16 = 0

    throttle_time_ms: i32 = 0
    results: list[DeletableGroupResult] = []
