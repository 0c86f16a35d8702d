"""Fetch (API key 1): v4-18."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from headpond.protocol.types import ZERO_UUID, Message, Records, Struct, Uuid, i8, i16, i32, i64, versions


class FetchRequest(Message):
    KEY = 1
    VERSIONS = versions(4, 18)
    FLEXIBLE = 12

    class ReplicaState(Struct):
        replica_id: i32 = -1
        replica_epoch: i64 = -1

    class FetchTopic(Struct):
        topic: Annotated[str, "4-12 ignorable"] = ""
        topic_id: Annotated[Uuid, "13+ ignorable"] = ZERO_UUID
        partitions: list[FetchRequest.FetchPartition] = []

    class FetchPartition(Struct):
        partition: i32 = 0
        current_leader_epoch: Annotated[i32, "9+ ignorable"] = -1
        fetch_offset: i64 = 0
        last_fetched_epoch: Annotated[i32, "12+"] = -1
        log_start_offset: Annotated[i64, "5+ ignorable"] = -1
        partition_max_bytes: i32 = 0
        replica_directory_id: Annotated[Uuid, "17+ tag 0 ignorable"] = ZERO_UUID
        high_watermark: Annotated[i64, "18+ tag 1 ignorable"] = 9_223_372_036_854_775_807

    class ForgottenTopic(Struct):
        topic: Annotated[str, "7-12 ignorable"] = ""
        topic_id: Annotated[Uuid, "13+ ignorable"] = ZERO_UUID
        partitions: list[i32] = []

    cluster_id: Annotated[str | None, "12+ tag 0 ignorable"] = None
    replica_id: Annotated[i32, "4-14"] = -1
    replica_state: Annotated[ReplicaState, "15+ tag 1"] = field(default_factory=ReplicaState)
    max_wait_ms: i32 = 0
    min_bytes: i32 = 0
    max_bytes: i32 = 2_147_483_647
    isolation_level: i8 = 0
    session_id: Annotated[i32, "7+ ignorable"] = 0
    session_epoch: Annotated[i32, "7+ ignorable"] = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], "7+"] = []
    rack_id: Annotated[str, "11+ ignorable"] = ""


class FetchResponse(Message):
    KEY = 1
    VERSIONS = versions(4, 18)
    FLEXIBLE = 12

    class FetchableTopicResponse(Struct):
        topic: Annotated[str, "4-12 ignorable"] = ""
        topic_id: Annotated[Uuid, "13+ ignorable"] = ZERO_UUID
        partitions: list[FetchResponse.PartitionData] = []

    class PartitionData(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0
        high_watermark: i64 = 0
        last_stable_offset: i64 = -1
        log_start_offset: Annotated[i64, "5+ ignorable"] = -1
        diverging_epoch: Annotated[FetchResponse.EpochEndOffset, "12+ tag 0"] = field(
            default_factory=lambda: FetchResponse.EpochEndOffset()
        )
        current_leader: Annotated[FetchResponse.LeaderIdAndEpoch, "12+ tag 1"] = field(
            default_factory=lambda: FetchResponse.LeaderIdAndEpoch()
        )
        snapshot_id: Annotated[FetchResponse.SnapshotId, "12+ tag 2"] = field(
            default_factory=lambda: FetchResponse.SnapshotId()
        )
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None = []
        preferred_read_replica: Annotated[i32, "11+"] = -1
        records: Records | None = None

    class EpochEndOffset(Struct):
        epoch: i32 = -1
        end_offset: i64 = -1

    class LeaderIdAndEpoch(Struct):
        leader_id: i32 = -1
        leader_epoch: i32 = -1

    class SnapshotId(Struct):
        end_offset: i64 = -1
        epoch: i32 = -1

    class AbortedTransaction(Struct):
        producer_id: i64 = 0
        first_offset: i64 = 0

    class NodeEndpoint(Struct):
        node_id: i32 = 0
        host: str = ""
        port: i32 = 0
        rack: str | None = None

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, "7+ ignorable"] = 0
    session_id: Annotated[i32, "7+"] = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[NodeEndpoint], "16+ tag 0"] = []
