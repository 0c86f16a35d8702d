"""IncrementalAlterConfigs (API key 44): v0-1."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class IncrementalAlterConfigsRequest(Message):
    KEY = 44
    VERSIONS = versions(0, 1)
    FLEXIBLE = 1

    class AlterConfigsResource(Struct):
        resource_type: i8 = 0
        resource_name: str = ""
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = []

    class AlterableConfig(Struct):
        name: str = ""
        config_operation: i8 = 0
        value: str | None = ""

    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


class IncrementalAlterConfigsResponse(Message):
    KEY = 44
    VERSIONS = versions(0, 1)
    FLEXIBLE = 1

    class AlterConfigsResourceResponse(Struct):
        error_code: i16 = 0
        error_message: str | None = ""
        resource_type: i8 = 0
        resource_name: str = ""

    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []
