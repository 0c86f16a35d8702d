"""CreateAcls (API key 30): v1-3."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class CreateAclsRequest(Message):
    KEY = 30
    VERSIONS = versions(1, 3)
    FLEXIBLE = 2

    class AclCreation(Struct):
        resource_type: i8 = 0
        resource_name: str = ""
        resource_pattern_type: i8 = 3
        principal: str = ""
        host: str = ""
        operation: i8 = 0
        permission_type: i8 = 0

    creations: list[AclCreation] = []


class CreateAclsResponse(Message):
    KEY = 30
    VERSIONS = versions(1, 3)
    FLEXIBLE = 2

    class AclCreationResult(Struct):
        error_code: i16 = 0
        error_message: str | None = ""

    throttle_time_ms: i32 = 0
    results: list[AclCreationResult] = []
