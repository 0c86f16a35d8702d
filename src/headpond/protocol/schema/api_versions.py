"""ApiVersions (API key 18): v0-4."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, i64, versions


class ApiVersionsRequest(Message):
    KEY = 18
    VERSIONS = versions(0, 4)
    FLEXIBLE = 3

    client_software_name: Annotated[str, "3+ ignorable"] = ""
    client_software_version: Annotated[str, "3+ ignorable"] = ""


class ApiVersionsResponse(Message):
    KEY = 18
    VERSIONS = versions(0, 4)
    FLEXIBLE = 3

    class ApiVersion(Struct):
        api_key: i16 = 0
        min_version: i16 = 0
        max_version: i16 = 0

    class SupportedFeatureKey(Struct):
        name: str = ""
        min_version: i16 = 0
        max_version: i16 = 0

    class FinalizedFeatureKey(Struct):
        name: str = ""
        max_version_level: i16 = 0
        min_version_level: i16 = 0

    error_code: i16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[i32, "1+ ignorable"] = 0
    supported_features: Annotated[list[SupportedFeatureKey], "3+ tag 0 ignorable"] = []
    finalized_features_epoch: Annotated[i64, "3+ tag 1 ignorable"] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], "3+ tag 2 ignorable"] = []
    zk_migration_ready: Annotated[bool, "3+ tag 3 ignorable"] = False
