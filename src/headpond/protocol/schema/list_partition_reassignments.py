"""ListPartitionReassignments (API key 46): v0."""

from __future__ import annotations

from headpond.protocol.types import Message, Struct, i16, i32, versions


class ListPartitionReassignmentsRequest(Message):
    KEY = 46
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class ListPartitionReassignmentsTopics(Struct):
        name: str = ""
        partition_indexes: list[i32] = []

    timeout_ms: i32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


class ListPartitionReassignmentsResponse(Message):
    KEY = 46
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class OngoingTopicReassignment(Struct):
        name: str = ""
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = []

    class OngoingPartitionReassignment(Struct):
        partition_index: i32 = 0
        replicas: list[i32] = []
        adding_replicas: list[i32] = []
        removing_replicas: list[i32] = []

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = []
