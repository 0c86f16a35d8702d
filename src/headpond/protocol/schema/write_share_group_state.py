"""WriteShareGroupState (API key 85): v0-1."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i8, i16, i32, i64, versions


class WriteShareGroupStateRequest(Message):
    KEY = 85
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class WriteStateData(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[WriteShareGroupStateRequest.PartitionData] = []

    class PartitionData(Struct):
        partition: i32 = 0
        state_epoch: i32 = 0
        leader_epoch: i32 = 0
        start_offset: i64 = 0
        delivery_complete_count: Annotated[i32, "1+ ignorable"] = -1
        state_batches: list[WriteShareGroupStateRequest.StateBatch] = []

    class StateBatch(Struct):
        first_offset: i64 = 0
        last_offset: i64 = 0
        delivery_state: i8 = 0
        delivery_count: i16 = 0

    group_id: str = ""
    topics: list[WriteStateData] = []


class WriteShareGroupStateResponse(Message):
    KEY = 85
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class WriteStateResult(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[WriteShareGroupStateResponse.PartitionResult] = []

    class PartitionResult(Struct):
        partition: i32 = 0
        error_code: i16 = 0
        error_message: str | None = None

    results: list[WriteStateResult] = []
