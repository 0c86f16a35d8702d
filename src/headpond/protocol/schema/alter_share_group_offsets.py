"""AlterShareGroupOffsets (API key 91): v0."""

from __future__ import annotations

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, i64, versions


class AlterShareGroupOffsetsRequest(Message):
    KEY = 91
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class AlterShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = ""
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = []

    class AlterShareGroupOffsetsRequestPartition(Struct):
        partition_index: i32 = 0
        start_offset: i64 = 0

    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = []


class AlterShareGroupOffsetsResponse(Message):
    KEY = 91
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class AlterShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = ""
        topic_id: Uuid = ZERO_UUID
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = []

    class AlterShareGroupOffsetsResponsePartition(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0
        error_message: str | None = None

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = []
