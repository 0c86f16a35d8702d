"""ShareAcknowledge (API key 79): v1-2."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i8, i16, i32, i64, versions


class ShareAcknowledgeRequest(Message):
    KEY = 79
    VERSIONS = versions(1, 2)
    FLEXIBLE = 1

    class AcknowledgeTopic(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = []

    class AcknowledgePartition(Struct):
        partition_index: i32 = 0
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = []

    class AcknowledgementBatch(Struct):
        first_offset: i64 = 0
        last_offset: i64 = 0
        acknowledge_types: list[i8] = []

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: i32 = 0
    is_renew_ack: Annotated[bool, "2+"] = False
    topics: list[AcknowledgeTopic] = []


class ShareAcknowledgeResponse(Message):
    KEY = 79
    VERSIONS = versions(1, 2)
    FLEXIBLE = 1

    class ShareAcknowledgeTopicResponse(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[ShareAcknowledgeResponse.PartitionData] = []

    class PartitionData(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0
        error_message: str | None = None
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = field(
            default_factory=lambda: ShareAcknowledgeResponse.LeaderIdAndEpoch()
        )

    class LeaderIdAndEpoch(Struct):
        leader_id: i32 = 0
        leader_epoch: i32 = 0

    class NodeEndpoint(Struct):
        node_id: i32 = 0
        host: str = ""
        port: i32 = 0
        rack: str | None = None

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: Annotated[i32, "2+ ignorable"] = 0
    responses: list[ShareAcknowledgeTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
