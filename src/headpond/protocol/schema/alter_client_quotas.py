"""AlterClientQuotas (API key 49): v0-1."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i16, i32, versions


class AlterClientQuotasRequest(Message):
    KEY = 49
    VERSIONS = versions(0, 1)
    FLEXIBLE = 1

    class EntryData(Struct):
        entity: list[AlterClientQuotasRequest.EntityData] = []
        ops: list[AlterClientQuotasRequest.OpData] = []

    class EntityData(Struct):
        entity_type: str = ""
        entity_name: str | None = ""

    class OpData(Struct):
        key: str = ""
        value: float = 0.0
        remove: bool = False

    entries: list[EntryData] = []
    validate_only: bool = False


class AlterClientQuotasResponse(Message):
    KEY = 49
    VERSIONS = versions(0, 1)
    FLEXIBLE = 1

    class EntryData(Struct):
        error_code: i16 = 0
        error_message: str | None = ""
        entity: list[AlterClientQuotasResponse.EntityData] = []

    class EntityData(Struct):
        entity_type: str = ""
        entity_name: str | None = ""

    throttle_time_ms: i32 = 0
    entries: list[EntryData] = []
