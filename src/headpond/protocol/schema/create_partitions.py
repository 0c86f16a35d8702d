"""CreatePartitions (API key 37): v0-3."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i16, i32, versions


class CreatePartitionsRequest(Message):
    KEY = 37
    VERSIONS = versions(0, 3)
    FLEXIBLE = 2

    class CreatePartitionsTopic(Struct):
        name: str = ""
        count: i32 = 0
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = []

    class CreatePartitionsAssignment(Struct):
        broker_ids: list[i32] = []

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: i32 = 0
    validate_only: bool = False


class CreatePartitionsResponse(Message):
    KEY = 37
    VERSIONS = versions(0, 3)
    FLEXIBLE = 2

    class CreatePartitionsTopicResult(Struct):
        name: str = ""
        error_code: i16 = 0
        error_message: str | None = None

    throttle_time_ms: i32 = 0
    results: list[CreatePartitionsTopicResult] = []
