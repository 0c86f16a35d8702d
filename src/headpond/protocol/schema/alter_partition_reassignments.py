"""AlterPartitionReassignments (API key 45): v0-1."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i16, i32, versions


class AlterPartitionReassignmentsRequest(Message):
    KEY = 45
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class ReassignableTopic(Struct):
        name: str = ""
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = []

    class ReassignablePartition(Struct):
        partition_index: i32 = 0
        replicas: list[i32] | None = None

    timeout_ms: i32 = 60000
    allow_replication_factor_change: Annotated[bool, "1+"] = True
    topics: list[ReassignableTopic] = []


class AlterPartitionReassignmentsResponse(Message):
    KEY = 45
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class ReassignableTopicResponse(Struct):
        name: str = ""
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = []

    class ReassignablePartitionResponse(Struct):
        partition_index: i32 = 0
        error_code: i16 = 0
        error_message: str | None = ""

    throttle_time_ms: i32 = 0
    allow_replication_factor_change: Annotated[bool, "1+ ignorable"] = True
    error_code: i16 = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = []
