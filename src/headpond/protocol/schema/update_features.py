"""UpdateFeatures (API key 57): v0-2."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class UpdateFeaturesRequest(Message):
    KEY = 57
    VERSIONS = versions(0, 2)
    FLEXIBLE = 0

    class FeatureUpdateKey(Struct):
        feature: str = ""
        max_version_level: i16 = 0
        allow_downgrade: Annotated[bool, "0"] = False
        upgrade_type: Annotated[i8, "1+"] = 1

    timeout_ms: i32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[bool, "1+"] = False


class UpdateFeaturesResponse(Message):
    KEY = 57
    VERSIONS = versions(0, 2)
    FLEXIBLE = 0

    class UpdatableFeatureResult(Struct):
        feature: str = ""
        error_code: i16 = 0
        error_message: str | None = ""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    results: Annotated[list[UpdatableFeatureResult], "0-1 ignorable"] = []
