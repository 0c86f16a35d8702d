"""DescribeShareGroupOffsets (API key 90): v0-1."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, i64, versions


class DescribeShareGroupOffsetsRequest(Message):
    KEY = 90
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class DescribeShareGroupOffsetsRequestGroup(Struct):
        group_id: str = ""
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = []

    class DescribeShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = ""
        partitions: list[i32] = []

    groups: list[DescribeShareGroupOffsetsRequestGroup] = []


class DescribeShareGroupOffsetsResponse(Message):
    KEY = 90
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class DescribeShareGroupOffsetsResponseGroup(Struct):
        group_id: str = ""
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = []
        error_code: i16 = 0
        error_message: str | None = None

    class DescribeShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = ""
        topic_id: Uuid = ZERO_UUID
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = []

    class DescribeShareGroupOffsetsResponsePartition(Struct):
        partition_index: i32 = 0
        start_offset: i64 = 0
        leader_epoch: i32 = 0
        lag: Annotated[i64, "1+ ignorable"] = -1
        error_code: i16 = 0
        error_message: str | None = None

    throttle_time_ms: i32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
