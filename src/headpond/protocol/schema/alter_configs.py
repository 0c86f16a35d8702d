"""AlterConfigs (API key 33): v0-2."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class AlterConfigsRequest(Message):
    KEY = 33
    VERSIONS = versions(0, 2)
    FLEXIBLE = 2

    class AlterConfigsResource(Struct):
        resource_type: i8 = 0
        resource_name: str = ""
        configs: list[AlterConfigsRequest.AlterableConfig] = []

    class AlterableConfig(Struct):
        name: str = ""
        value: str | None = ""

    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


class AlterConfigsResponse(Message):
    KEY = 33
    VERSIONS = versions(0, 2)
    FLEXIBLE = 2

    class AlterConfigsResourceResponse(Struct):
        error_code: i16 = 0
        error_message: str | None = ""
        resource_type: i8 = 0
        resource_name: str = ""

    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []
