"""DescribeTopicPartitions (API key 75): v0."""

from __future__ import annotations

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, versions


class DescribeTopicPartitionsRequest(Message):
    KEY = 75
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TopicRequest(Struct):
        name: str = ""

    class Cursor(Struct):
        topic_name: str = ""
        partition_index: i32 = 0

    topics: list[TopicRequest] = []
    response_partition_limit: i32 = 2000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponse(Message):
    KEY = 75
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class DescribeTopicPartitionsResponseTopic(Struct):
        error_code: i16 = 0
        name: str | None = ""
        topic_id: Uuid = ZERO_UUID
        is_internal: bool = False
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = []
        topic_authorized_operations: i32 = -2_147_483_648

    class DescribeTopicPartitionsResponsePartition(Struct):
        error_code: i16 = 0
        partition_index: i32 = 0
        leader_id: i32 = 0
        leader_epoch: i32 = -1
        replica_nodes: list[i32] = []
        isr_nodes: list[i32] = []
        eligible_leader_replicas: list[i32] | None = None
        last_known_elr: list[i32] | None = None
        offline_replicas: list[i32] = []

    class Cursor(Struct):
        topic_name: str = ""
        partition_index: i32 = 0

    throttle_time_ms: i32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
