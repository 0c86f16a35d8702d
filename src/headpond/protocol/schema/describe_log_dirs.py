"""DescribeLogDirs (API key 35): v1-5."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, i64, versions


class DescribeLogDirsRequest(Message):
    KEY = 35
    VERSIONS = versions(1, 5)
    FLEXIBLE = 2

    class DescribableLogDirTopic(Struct):
        topic: str = ""
        partitions: list[i32] = []

    topics: list[DescribableLogDirTopic] | None = []


class DescribeLogDirsResponse(Message):
    KEY = 35
    VERSIONS = versions(1, 5)
    FLEXIBLE = 2

    class DescribeLogDirsResult(Struct):
        error_code: i16 = 0
        log_dir: str = ""
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = []
        total_bytes: Annotated[i64, "4+ ignorable"] = -1
        usable_bytes: Annotated[i64, "4+ ignorable"] = -1
        is_cordoned: Annotated[bool, "5+ ignorable"] = False

    class DescribeLogDirsTopic(Struct):
        name: str = ""
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = []

    class DescribeLogDirsPartition(Struct):
        partition_index: i32 = 0
        partition_size: i64 = 0
        offset_lag: i64 = 0
        is_future_key: bool = False

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, "3+ ignorable"] = 0
    results: list[DescribeLogDirsResult] = []
