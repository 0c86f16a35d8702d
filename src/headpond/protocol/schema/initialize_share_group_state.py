"""InitializeShareGroupState (API key 83): v0."""

from __future__ import annotations

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, i64, versions


class InitializeShareGroupStateRequest(Message):
    KEY = 83
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class InitializeStateData(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[InitializeShareGroupStateRequest.PartitionData] = []

    class PartitionData(Struct):
        partition: i32 = 0
        state_epoch: i32 = 0
        start_offset: i64 = 0

    group_id: str = ""
    topics: list[InitializeStateData] = []


class InitializeShareGroupStateResponse(Message):
    KEY = 83
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class InitializeStateResult(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[InitializeShareGroupStateResponse.PartitionResult] = []

    class PartitionResult(Struct):
        partition: i32 = 0
        error_code: i16 = 0
        error_message: str | None = None

    results: list[InitializeStateResult] = []
