"""ShareFetch (API key 78): v1-2."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from headpond.protocol.types import ZERO_UUID, Message, Records, Struct, Uuid, i8, i16, i32, i64, versions


class ShareFetchRequest(Message):
    KEY = 78
    VERSIONS = versions(1, 2)
    FLEXIBLE = 1

    class FetchTopic(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[ShareFetchRequest.FetchPartition] = []

    class FetchPartition(Struct):
        partition_index: i32 = 0
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = []

    class AcknowledgementBatch(Struct):
        first_offset: i64 = 0
        last_offset: i64 = 0
        acknowledge_types: list[i8] = []

    class ForgottenTopic(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[i32] = []

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: i32 = 0
    max_wait_ms: i32 = 0
    min_bytes: i32 = 0
    max_bytes: i32 = 2_147_483_647
    max_records: i32 = 0
    batch_size: i32 = 0
    share_acquire_mode: Annotated[i8, "2+ ignorable"] = 0
    is_renew_ack: Annotated[bool, "2+"] = False
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []


class ShareFetchResponse(Message):
    KEY = 78
    VERSIONS = versions(1, 2)
    FLEXIBLE = 1

    class ShareFetchableTopicResponse(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[ShareFetchResponse.PartitionData] = []

    class PartitionData(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0
        error_message: str | None = None
        acknowledge_error_code: i16 = 0
        acknowledge_error_message: str | None = None
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = field(
            default_factory=lambda: ShareFetchResponse.LeaderIdAndEpoch()
        )
        records: Annotated[Records | None, "null never"] = None
        acquired_records: list[ShareFetchResponse.AcquiredRecords] = []

    class LeaderIdAndEpoch(Struct):
        leader_id: i32 = 0
        leader_epoch: i32 = 0

    class AcquiredRecords(Struct):
        first_offset: i64 = 0
        last_offset: i64 = 0
        delivery_count: i16 = 0

    class NodeEndpoint(Struct):
        node_id: i32 = 0
        host: str = ""
        port: i32 = 0
        rack: str | None = None

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: i32 = 0
    responses: list[ShareFetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
