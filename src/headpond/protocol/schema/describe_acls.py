"""DescribeAcls (API key 29): v1-3."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class DescribeAclsRequest(Message):
    KEY = 29
    VERSIONS = versions(1, 3)
    FLEXIBLE = 2

    resource_type_filter: i8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: i8 = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: i8 = 0
    permission_type: i8 = 0


class DescribeAclsResponse(Message):
    KEY = 29
    VERSIONS = versions(1, 3)
    FLEXIBLE = 2

    class DescribeAclsResource(Struct):
        resource_type: i8 = 0
        resource_name: str = ""
        pattern_type: i8 = 3
        acls: list[DescribeAclsResponse.AclDescription] = []

    class AclDescription(Struct):
        principal: str = ""
        host: str = ""
        operation: i8 = 0
        permission_type: i8 = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = []
