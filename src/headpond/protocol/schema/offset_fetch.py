"""OffsetFetch (API key 9): v1-10."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, i64, versions


class OffsetFetchRequest(Message):
    KEY = 9
    VERSIONS = versions(1, 10)
    FLEXIBLE = 6

    class OffsetFetchRequestTopic(Struct):
        name: str = ""
        partition_indexes: list[i32] = []

    class OffsetFetchRequestGroup(Struct):
        group_id: str = ""
        member_id: Annotated[str | None, "9+ ignorable"] = None
        member_epoch: Annotated[i32, "9+ ignorable"] = -1
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = []

    class OffsetFetchRequestTopics(Struct):
        name: Annotated[str, "8-9 ignorable"] = ""
        topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO_UUID
        partition_indexes: list[i32] = []

    group_id: Annotated[str, "1-7"] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, "1-7 null 2-7"] = []
    groups: Annotated[list[OffsetFetchRequestGroup], "8+"] = []
    require_stable: Annotated[bool, "7+"] = False


class OffsetFetchResponse(Message):
    KEY = 9
    VERSIONS = versions(1, 10)
    FLEXIBLE = 6

    class OffsetFetchResponseTopic(Struct):
        name: str = ""
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = []

    class OffsetFetchResponsePartition(Struct):
        partition_index: i32 = 0
        committed_offset: i64 = 0
        committed_leader_epoch: Annotated[i32, "5-7 ignorable"] = -1
        metadata: str | None = ""
        error_code: i16 = 0

    class OffsetFetchResponseGroup(Struct):
        group_id: str = ""
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = []
        error_code: i16 = 0

    class OffsetFetchResponseTopics(Struct):
        name: Annotated[str, "8-9 ignorable"] = ""
        topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO_UUID
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = []

    class OffsetFetchResponsePartitions(Struct):
        partition_index: i32 = 0
        committed_offset: i64 = 0
        committed_leader_epoch: i32 = -1
        metadata: str | None = ""
        error_code: i16 = 0

    throttle_time_ms: Annotated[i32, "3+ ignorable"] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], "1-7"] = []
    error_code: Annotated[i16, "2-7 ignorable"] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], "8+"] = []
