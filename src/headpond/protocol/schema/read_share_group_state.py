"""ReadShareGroupState (API key 84): v0."""

from __future__ import annotations

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i8, i16, i32, i64, versions


class ReadShareGroupStateRequest(Message):
    KEY = 84
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class ReadStateData(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[ReadShareGroupStateRequest.PartitionData] = []

    class PartitionData(Struct):
        partition: i32 = 0
        leader_epoch: i32 = 0

    group_id: str = ""
    topics: list[ReadStateData] = []


class ReadShareGroupStateResponse(Message):
    KEY = 84
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class ReadStateResult(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[ReadShareGroupStateResponse.PartitionResult] = []

    class PartitionResult(Struct):
        partition: i32 = 0
        error_code: i16 = 0
        error_message: str | None = None
        state_epoch: i32 = 0
        start_offset: i64 = 0
        state_batches: list[ReadShareGroupStateResponse.StateBatch] = []

    class StateBatch(Struct):
        first_offset: i64 = 0
        last_offset: i64 = 0
        delivery_state: i8 = 0
        delivery_count: i16 = 0

    results: list[ReadStateResult] = []
