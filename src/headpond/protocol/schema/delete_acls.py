"""DeleteAcls (API key 31): v1-3."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class DeleteAclsRequest(Message):
    KEY = 31
    VERSIONS = versions(1, 3)
    FLEXIBLE = 2

    class DeleteAclsFilter(Struct):
        resource_type_filter: i8 = 0
        resource_name_filter: str | None = ""
        pattern_type_filter: i8 = 3
        principal_filter: str | None = ""
        host_filter: str | None = ""
        operation: i8 = 0
        permission_type: i8 = 0

    filters: list[DeleteAclsFilter] = []


class DeleteAclsResponse(Message):
    KEY = 31
    VERSIONS = versions(1, 3)
    FLEXIBLE = 2

    class DeleteAclsFilterResult(Struct):
        error_code: i16 = 0
        error_message: str | None = ""
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = []

    class DeleteAclsMatchingAcl(Struct):
        error_code: i16 = 0
        error_message: str | None = ""
        resource_type: i8 = 0
        resource_name: str = ""
        pattern_type: i8 = 3
        principal: str = ""
        host: str = ""
        operation: i8 = 0
        permission_type: i8 = 0

    throttle_time_ms: i32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
