"""ListOffsets (API key 2): v1-11."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i8, i16, i32, i64, versions


class ListOffsetsRequest(Message):
    KEY = 2
    VERSIONS = versions(1, 11)
    FLEXIBLE = 6

    class ListOffsetsTopic(Struct):
        name: str = ""
        partitions: list[ListOffsetsRequest.ListOffsetsPartition] = []

    class ListOffsetsPartition(Struct):
        partition_index: i32 = 0
        current_leader_epoch: Annotated[i32, "4+ ignorable"] = -1
        timestamp: i64 = 0

    replica_id: i32 = 0
    isolation_level: Annotated[i8, "2+"] = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[i32, "10+ ignorable"] = 0


class ListOffsetsResponse(Message):
    KEY = 2
    VERSIONS = versions(1, 11)
    FLEXIBLE = 6

    class ListOffsetsTopicResponse(Struct):
        name: str = ""
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = []

    class ListOffsetsPartitionResponse(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0
        timestamp: i64 = -1
        offset: i64 = -1
        leader_epoch: Annotated[i32, "4+"] = -1

    throttle_time_ms: Annotated[i32, "2+ ignorable"] = 0
    topics: list[ListOffsetsTopicResponse] = []
