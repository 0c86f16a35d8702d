"""ReadShareGroupStateSummary (API key 87): v0-1."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, i64, versions


class ReadShareGroupStateSummaryRequest(Message):
    KEY = 87
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class ReadStateSummaryData(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = []

    class PartitionData(Struct):
        partition: i32 = 0
        leader_epoch: i32 = 0

    group_id: str = ""
    topics: list[ReadStateSummaryData] = []


class ReadShareGroupStateSummaryResponse(Message):
    KEY = 87
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class ReadStateSummaryResult(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = []

    class PartitionResult(Struct):
        partition: i32 = 0
        error_code: i16 = 0
        error_message: str | None = None
        state_epoch: i32 = 0
        leader_epoch: i32 = 0
        start_offset: i64 = 0
        delivery_complete_count: Annotated[i32, "1+ ignorable"] = -1

    results: list[ReadStateSummaryResult] = []
