"""Records in __consumer_offsets: streams groups (KIP-1071). KEY is the record type."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import Message, Struct, i8, i16, i32, i64, u16, versions


class StreamsGroupCurrentMemberAssignmentKey(Message):
    KEY = 22
    VERSIONS = versions(0, 0)

    group_id: str = ""
    member_id: str = ""


class StreamsGroupCurrentMemberAssignmentValue(Message):
    KEY = 22
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TaskIds(Struct):
        subtopology_id: str = ""
        partitions: list[i32] = []
        assignment_epochs: Annotated[list[i32] | None, "tag 0"] = []

    member_epoch: i32 = 0
    previous_member_epoch: i32 = 0
    state: i8 = 0
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []
    active_tasks_pending_revocation: list[TaskIds] = []
    standby_tasks_pending_revocation: list[TaskIds] = []
    warmup_tasks_pending_revocation: list[TaskIds] = []


class StreamsGroupMemberMetadataKey(Message):
    KEY = 19
    VERSIONS = versions(0, 0)

    group_id: str = ""
    member_id: str = ""


class StreamsGroupMemberMetadataValue(Message):
    KEY = 19
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class Endpoint(Struct):
        host: str = ""
        port: u16 = 0

    class KeyValue(Struct):
        key: str = ""
        value: str = ""

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: i32 = -1
    topology_epoch: i32 = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []


class StreamsGroupMetadataKey(Message):
    KEY = 17
    VERSIONS = versions(0, 0)

    group_id: str = ""


class StreamsGroupMetadataValue(Message):
    KEY = 17
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class LastAssignmentConfig(Struct):
        key: str = ""
        value: str = ""

    epoch: i32 = 0
    metadata_hash: i64 = 0
    validated_topology_epoch: Annotated[i32, "tag 0"] = -1
    last_assignment_configs: Annotated[list[LastAssignmentConfig] | None, "tag 1"] = []


class StreamsGroupTargetAssignmentMemberKey(Message):
    KEY = 21
    VERSIONS = versions(0, 0)

    group_id: str = ""
    member_id: str = ""


class StreamsGroupTargetAssignmentMemberValue(Message):
    KEY = 21
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TaskIds(Struct):
        subtopology_id: str = ""
        partitions: list[i32] = []

    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []


class StreamsGroupTargetAssignmentMetadataKey(Message):
    KEY = 20
    VERSIONS = versions(0, 0)

    group_id: str = ""


class StreamsGroupTargetAssignmentMetadataValue(Message):
    KEY = 20
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    assignment_epoch: i32 = 0
    assignment_timestamp: Annotated[i64, "tag 0"] = 0


class StreamsGroupTopologyKey(Message):
    KEY = 23
    VERSIONS = versions(0, 0)

    group_id: str = ""


class StreamsGroupTopologyValue(Message):
    KEY = 23
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class Subtopology(Struct):
        subtopology_id: str = ""
        source_topics: list[str] = []
        source_topic_regex: list[str] = []
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = []
        repartition_sink_topics: list[str] = []
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = []
        copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = []

    class TopicInfo(Struct):
        name: str = ""
        partitions: i32 = 0
        replication_factor: i16 = 0
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = []

    class TopicConfig(Struct):
        key: str = ""
        value: str = ""

    class CopartitionGroup(Struct):
        source_topics: list[i16] = []
        source_topic_regex: list[i16] = []
        repartition_source_topics: list[i16] = []

    epoch: i32 = 0
    subtopologies: list[Subtopology] = []
