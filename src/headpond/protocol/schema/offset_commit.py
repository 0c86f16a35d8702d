"""OffsetCommit (API key 8): v2-10."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, i64, versions


class OffsetCommitRequest(Message):
    KEY = 8
    VERSIONS = versions(2, 10)
    FLEXIBLE = 8

    class OffsetCommitRequestTopic(Struct):
        name: Annotated[str, "2-9 ignorable"] = ""
        topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO_UUID
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = []

    class OffsetCommitRequestPartition(Struct):
        partition_index: i32 = 0
        committed_offset: i64 = 0
        committed_leader_epoch: Annotated[i32, "6+ ignorable"] = -1
        committed_metadata: str | None = ""

    group_id: str = ""
    generation_id_or_member_epoch: i32 = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, "7+"] = None
    retention_time_ms: Annotated[i64, "2-4 ignorable"] = -1
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponse(Message):
    KEY = 8
    VERSIONS = versions(2, 10)
    FLEXIBLE = 8

    class OffsetCommitResponseTopic(Struct):
        name: Annotated[str, "2-9 ignorable"] = ""
        topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO_UUID
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = []

    class OffsetCommitResponsePartition(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0

    throttle_time_ms: Annotated[i32, "3+ ignorable"] = 0
    topics: list[OffsetCommitResponseTopic] = []
