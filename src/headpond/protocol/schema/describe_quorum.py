"""DescribeQuorum (API key 55): v0-2."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, i64, u16, versions


class DescribeQuorumRequest(Message):
    KEY = 55
    VERSIONS = versions(0, 2)
    FLEXIBLE = 0

    class TopicData(Struct):
        topic_name: str = ""
        partitions: list[DescribeQuorumRequest.PartitionData] = []

    class PartitionData(Struct):
        partition_index: i32 = 0

    topics: list[TopicData] = []


class DescribeQuorumResponse(Message):
    KEY = 55
    VERSIONS = versions(0, 2)
    FLEXIBLE = 0

    class TopicData(Struct):
        topic_name: str = ""
        partitions: list[DescribeQuorumResponse.PartitionData] = []

    class PartitionData(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0
        error_message: Annotated[str | None, "2+ ignorable"] = ""
        leader_id: i32 = 0
        leader_epoch: i32 = 0
        high_watermark: i64 = 0
        current_voters: list[DescribeQuorumResponse.ReplicaState] = []
        observers: list[DescribeQuorumResponse.ReplicaState] = []

    class ReplicaState(Struct):
        replica_id: i32 = 0
        replica_directory_id: Annotated[Uuid, "2+"] = ZERO_UUID
        log_end_offset: i64 = 0
        last_fetch_timestamp: Annotated[i64, "1+ ignorable"] = -1
        last_caught_up_timestamp: Annotated[i64, "1+ ignorable"] = -1

    class Node(Struct):
        node_id: i32 = 0
        listeners: list[DescribeQuorumResponse.Listener] = []

    class Listener(Struct):
        name: str = ""
        host: str = ""
        port: u16 = 0

    error_code: i16 = 0
    error_message: Annotated[str | None, "2+ ignorable"] = ""
    topics: list[TopicData] = []
    nodes: Annotated[list[Node], "2+"] = []
