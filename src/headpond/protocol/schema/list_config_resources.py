"""ListConfigResources (API key 74): v0-1."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class ListConfigResourcesRequest(Message):
    KEY = 74
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    resource_types: Annotated[list[i8], "1+"] = []


class ListConfigResourcesResponse(Message):
    KEY = 74
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class ConfigResource(Struct):
        resource_name: str = ""
        resource_type: Annotated[i8, "1+ ignorable"] = 16

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    config_resources: list[ConfigResource] = []
