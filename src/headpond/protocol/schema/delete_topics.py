"""DeleteTopics (API key 20): v1-6."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, versions


class DeleteTopicsRequest(Message):
    KEY = 20
    VERSIONS = versions(1, 6)
    FLEXIBLE = 4

    class DeleteTopicState(Struct):
        name: str | None = None
        topic_id: Uuid = ZERO_UUID

    topics: Annotated[list[DeleteTopicState], "6+"] = []
    topic_names: Annotated[list[str], "1-5 ignorable"] = []
    timeout_ms: i32 = 0


class DeleteTopicsResponse(Message):
    KEY = 20
    VERSIONS = versions(1, 6)
    FLEXIBLE = 4

    class DeletableTopicResult(Struct):
        name: Annotated[str | None, "null 6+"] = ""
        topic_id: Annotated[Uuid, "6+ ignorable"] = ZERO_UUID
        error_code: i16 = 0
        error_message: Annotated[str | None, "5+ ignorable"] = None

    throttle_time_ms: i32 = 0
    responses: list[DeletableTopicResult] = []
