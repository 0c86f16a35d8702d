"""DeleteShareGroupOffsets (API key 92): v0."""

from __future__ import annotations

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, versions


class DeleteShareGroupOffsetsRequest(Message):
    KEY = 92
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = ""

    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []


class DeleteShareGroupOffsetsResponse(Message):
    KEY = 92
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = ""
        topic_id: Uuid = ZERO_UUID
        error_code: i16 = 0
        error_message: str | None = None

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []
