"""DescribeClientQuotas (API key 48): v0-1."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class DescribeClientQuotasRequest(Message):
    KEY = 48
    VERSIONS = versions(0, 1)
    FLEXIBLE = 1

    class ComponentData(Struct):
        entity_type: str = ""
        match_type: i8 = 0
        match: str | None = ""

    components: list[ComponentData] = []
    strict: bool = False


class DescribeClientQuotasResponse(Message):
    KEY = 48
    VERSIONS = versions(0, 1)
    FLEXIBLE = 1

    class EntryData(Struct):
        entity: list[DescribeClientQuotasResponse.EntityData] = []
        values: list[DescribeClientQuotasResponse.ValueData] = []

    class EntityData(Struct):
        entity_type: str = ""
        entity_name: str | None = ""

    class ValueData(Struct):
        key: str = ""
        value: float = 0.0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = []
