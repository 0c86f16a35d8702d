"""Produce (API key 0): v3-13."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from headpond.protocol.types import ZERO_UUID, Message, Records, Struct, Uuid, i16, i32, i64, versions


class ProduceRequest(Message):
    KEY = 0
    VERSIONS = versions(3, 13)
    FLEXIBLE = 9

    class TopicProduceData(Struct):
        name: Annotated[str, "3-12 ignorable"] = ""
        topic_id: Annotated[Uuid, "13+ ignorable"] = ZERO_UUID
        partition_data: list[ProduceRequest.PartitionProduceData] = []

    class PartitionProduceData(Struct):
        index: i32 = 0
        records: Records | None = None

    transactional_id: str | None = None
    acks: i16 = 0
    timeout_ms: i32 = 0
    topic_data: list[TopicProduceData] = []


class ProduceResponse(Message):
    KEY = 0
    VERSIONS = versions(3, 13)
    FLEXIBLE = 9

    class TopicProduceResponse(Struct):
        name: Annotated[str, "3-12 ignorable"] = ""
        topic_id: Annotated[Uuid, "13+ ignorable"] = ZERO_UUID
        partition_responses: list[ProduceResponse.PartitionProduceResponse] = []

    class PartitionProduceResponse(Struct):
        index: i32 = 0
        error_code: i16 = 0
        base_offset: i64 = 0
        log_append_time_ms: i64 = -1
        log_start_offset: Annotated[i64, "5+ ignorable"] = -1
        record_errors: Annotated[list[ProduceResponse.BatchIndexAndErrorMessage], "8+ ignorable"] = []
        error_message: Annotated[str | None, "8+ ignorable"] = None
        current_leader: Annotated[ProduceResponse.LeaderIdAndEpoch, "10+ tag 0"] = field(
            default_factory=lambda: ProduceResponse.LeaderIdAndEpoch()
        )

    class BatchIndexAndErrorMessage(Struct):
        batch_index: i32 = 0
        batch_index_error_message: str | None = None

    class LeaderIdAndEpoch(Struct):
        leader_id: i32 = -1
        leader_epoch: i32 = -1

    class NodeEndpoint(Struct):
        node_id: i32 = 0
        host: str = ""
        port: i32 = 0
        rack: str | None = None

    responses: list[TopicProduceResponse] = []
    throttle_time_ms: i32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], "10+ tag 0"] = []
