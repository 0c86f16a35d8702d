"""DeleteRecords (API key 21): v0-2."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i16, i32, i64, versions


class DeleteRecordsRequest(Message):
    KEY = 21
    VERSIONS = versions(0, 2)
    FLEXIBLE = 2

    class DeleteRecordsTopic(Struct):
        name: str = ""
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = []

    class DeleteRecordsPartition(Struct):
        partition_index: i32 = 0
        offset: i64 = 0

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: i32 = 0


class DeleteRecordsResponse(Message):
    KEY = 21
    VERSIONS = versions(0, 2)
    FLEXIBLE = 2

    class DeleteRecordsTopicResult(Struct):
        name: str = ""
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = []

    class DeleteRecordsPartitionResult(Struct):
        partition_index: i32 = 0
        low_watermark: i64 = 0
        error_code: i16 = 0

    throttle_time_ms: i32 = 0
    topics: list[DeleteRecordsTopicResult] = []
