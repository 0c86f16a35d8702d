"""DescribeConfigs (API key 32): v1-4."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class DescribeConfigsRequest(Message):
    KEY = 32
    VERSIONS = versions(1, 4)
    FLEXIBLE = 4

    class DescribeConfigsResource(Struct):
        resource_type: i8 = 0
        resource_name: str = ""
        configuration_keys: list[str] | None = []

    resources: list[DescribeConfigsResource] = []
    include_synonyms: bool = False
    include_documentation: Annotated[bool, "3+"] = False


class DescribeConfigsResponse(Message):
    KEY = 32
    VERSIONS = versions(1, 4)
    FLEXIBLE = 4

    class DescribeConfigsResult(Struct):
        error_code: i16 = 0
        error_message: str | None = ""
        resource_type: i8 = 0
        resource_name: str = ""
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = []

    class DescribeConfigsResourceResult(Struct):
        name: str = ""
        value: str | None = ""
        read_only: bool = False
        config_source: i8 = -1
        is_sensitive: bool = False
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = []
        config_type: Annotated[i8, "3+ ignorable"] = 0
        documentation: Annotated[str | None, "3+ ignorable"] = ""

    class DescribeConfigsSynonym(Struct):
        name: str = ""
        value: str | None = ""
        source: i8 = 0

    throttle_time_ms: i32 = 0
    results: list[DescribeConfigsResult] = []
