"""OffsetDelete (API key 47): v0."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i16, i32, versions


class OffsetDeleteRequest(Message):
    KEY = 47
    VERSIONS = versions(0, 0)

    class OffsetDeleteRequestTopic(Struct):
        name: str = ""
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = []

    class OffsetDeleteRequestPartition(Struct):
        partition_index: i32 = 0

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponse(Message):
    KEY = 47
    VERSIONS = versions(0, 0)

    class OffsetDeleteResponseTopic(Struct):
        name: str = ""
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = []

    class OffsetDeleteResponsePartition(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0

    error_code: i16 = 0
    throttle_time_ms: i32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
