"""OffsetForLeaderEpoch (API key 23): v2-4."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, i64, versions


class OffsetForLeaderEpochRequest(Message):
    KEY = 23
    VERSIONS = versions(2, 4)
    FLEXIBLE = 4

    class OffsetForLeaderTopic(Struct):
        topic: str = ""
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = []

    class OffsetForLeaderPartition(Struct):
        partition: i32 = 0
        current_leader_epoch: i32 = -1
        leader_epoch: i32 = 0

    replica_id: Annotated[i32, "3+ ignorable"] = -2
    topics: list[OffsetForLeaderTopic] = []


class OffsetForLeaderEpochResponse(Message):
    KEY = 23
    VERSIONS = versions(2, 4)
    FLEXIBLE = 4

    class OffsetForLeaderTopicResult(Struct):
        topic: str = ""
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = []

    class EpochEndOffset(Struct):
        error_code: i16 = 0
        partition: i32 = 0
        leader_epoch: i32 = -1
        end_offset: i64 = -1

    throttle_time_ms: i32 = 0
    topics: list[OffsetForLeaderTopicResult] = []
