"""ElectLeaders (API key 43): v0-2."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i8, i16, i32, versions


class ElectLeadersRequest(Message):
    KEY = 43
    VERSIONS = versions(0, 2)
    FLEXIBLE = 2

    class TopicPartitions(Struct):
        topic: str = ""
        partitions: list[i32] = []

    election_type: Annotated[i8, "1+"] = 0
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: i32 = 60000


class ElectLeadersResponse(Message):
    KEY = 43
    VERSIONS = versions(0, 2)
    FLEXIBLE = 2

    class ReplicaElectionResult(Struct):
        topic: str = ""
        partition_result: list[ElectLeadersResponse.PartitionResult] = []

    class PartitionResult(Struct):
        partition_id: i32 = 0
        error_code: i16 = 0
        error_message: str | None = ""

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, "1+"] = 0
    replica_election_results: list[ReplicaElectionResult] = []
