"""DeleteShareGroupState (API key 86): v0."""

from __future__ import annotations

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, versions


class DeleteShareGroupStateRequest(Message):
    KEY = 86
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class DeleteStateData(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[DeleteShareGroupStateRequest.PartitionData] = []

    class PartitionData(Struct):
        partition: i32 = 0

    group_id: str = ""
    topics: list[DeleteStateData] = []


class DeleteShareGroupStateResponse(Message):
    KEY = 86
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class DeleteStateResult(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[DeleteShareGroupStateResponse.PartitionResult] = []

    class PartitionResult(Struct):
        partition: i32 = 0
        error_code: i16 = 0
        error_message: str | None = None

    results: list[DeleteStateResult] = []
