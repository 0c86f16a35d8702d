"""DescribeProducers (API key 61): v0."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i16, i32, i64, versions


class DescribeProducersRequest(Message):
    KEY = 61
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TopicRequest(Struct):
        name: str = ""
        partition_indexes: list[i32] = []

    topics: list[TopicRequest] = []


class DescribeProducersResponse(Message):
    KEY = 61
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TopicResponse(Struct):
        name: str = ""
        partitions: list[DescribeProducersResponse.PartitionResponse] = []

    class PartitionResponse(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0
        error_message: str | None = None
        active_producers: list[DescribeProducersResponse.ProducerState] = []

    class ProducerState(Struct):
        producer_id: i64 = 0
        producer_epoch: i32 = 0
        last_sequence: i32 = -1
        last_timestamp: i64 = -1
        coordinator_epoch: i32 = 0
        current_txn_start_offset: i64 = -1

    throttle_time_ms: i32 = 0
    topics: list[TopicResponse] = []
