"""Keys and values of the records in __consumer_offsets; KEY is the record type."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from penstock.protocol.types import ZERO_UUID, Message, Struct, Uuid, i8, i16, i32, i64, u16, versions


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    KEY = 8
    VERSIONS = versions(0, 0)

    group_id: str = ""
    member_id: str = ""


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    KEY = 8
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TopicPartitions(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[i32] = []
        assignment_epochs: Annotated[list[i32] | None, "tag 0"] = []

    member_epoch: i32 = 0
    previous_member_epoch: i32 = 0
    state: i8 = 0
    assigned_partitions: list[TopicPartitions] = []
    partitions_pending_revocation: list[TopicPartitions] = []


class ConsumerGroupMemberMetadataKey(Message):
    KEY = 5
    VERSIONS = versions(0, 0)

    group_id: str = ""
    member_id: str = ""


class ConsumerGroupMemberMetadataValue(Message):
    KEY = 5
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class ClassicMemberMetadata(Struct):
        session_timeout_ms: i32 = 0
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = []

    class ClassicProtocol(Struct):
        name: str = ""
        metadata: bytes = b""

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: str | None = ""
    rebalance_timeout_ms: i32 = -1
    server_assignor: str | None = ""
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, "tag 0"] = field(
        default_factory=ClassicMemberMetadata
    )


class ConsumerGroupMetadataKey(Message):
    KEY = 3
    VERSIONS = versions(0, 0)

    group_id: str = ""


class ConsumerGroupMetadataValue(Message):
    KEY = 3
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    epoch: i32 = 0
    metadata_hash: Annotated[i64, "tag 0"] = 0


class ConsumerGroupPartitionMetadataKey(Message):
    KEY = 4
    VERSIONS = versions(0, 0)

    group_id: str = ""


class ConsumerGroupPartitionMetadataValue(Message):
    KEY = 4
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TopicMetadata(Struct):
        topic_id: Uuid = ZERO_UUID
        topic_name: str = ""
        num_partitions: i32 = 0
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = []

    class PartitionMetadata(Struct):
        partition: i32 = 0
        racks: list[str] = []

    topics: list[TopicMetadata] = []


class ConsumerGroupRegularExpressionKey(Message):
    KEY = 16
    VERSIONS = versions(0, 0)

    group_id: str = ""
    regular_expression: str = ""


class ConsumerGroupRegularExpressionValue(Message):
    KEY = 16
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    topics: list[str] = []
    version: i64 = 0
    timestamp: i64 = 0


class ConsumerGroupTargetAssignmentMemberKey(Message):
    KEY = 7
    VERSIONS = versions(0, 0)

    group_id: str = ""
    member_id: str = ""


class ConsumerGroupTargetAssignmentMemberValue(Message):
    KEY = 7
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TopicPartition(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[i32] = []

    topic_partitions: list[TopicPartition] = []


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    KEY = 6
    VERSIONS = versions(0, 0)

    group_id: str = ""


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    KEY = 6
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    assignment_epoch: i32 = 0
    assignment_timestamp: Annotated[i64, "tag 0"] = 0


class GroupMetadataKey(Message):
    KEY = 2
    VERSIONS = versions(0, 0)

    group: str = ""


class GroupMetadataValue(Message):
    KEY = 2
    VERSIONS = versions(0, 4)
    FLEXIBLE = 4

    class MemberMetadata(Struct):
        member_id: str = ""
        group_instance_id: Annotated[str | None, "3+ ignorable"] = None
        client_id: str = ""
        client_host: str = ""
        rebalance_timeout: Annotated[i32, "1+ ignorable"] = -1
        session_timeout: i32 = 0
        subscription: bytes = b""
        assignment: bytes = b""

    protocol_type: str = ""
    generation: i32 = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: Annotated[i64, "2+ ignorable"] = -1
    members: list[MemberMetadata] = []


class LegacyOffsetCommitKey(Message):
    KEY = 0
    VERSIONS = versions(0, 0)

    group: str = ""
    topic: str = ""
    partition: i32 = 0


class LegacyOffsetCommitValue(Message):
    KEY = 0
    VERSIONS = versions(0, 0)

    offset: i64 = 0
    metadata: str = ""
    commit_timestamp: i64 = 0


class OffsetCommitKey(Message):
    KEY = 1
    VERSIONS = versions(0, 0)

    group: str = ""
    topic: str = ""
    partition: i32 = 0


class OffsetCommitValue(Message):
    KEY = 1
    VERSIONS = versions(0, 4)
    FLEXIBLE = 4

    offset: i64 = 0
    leader_epoch: Annotated[i32, "3+ ignorable"] = -1
    metadata: str = ""
    commit_timestamp: i64 = 0
    expire_timestamp: Annotated[i64, "1 ignorable"] = -1
    topic_id: Annotated[Uuid, "4+ tag 0 ignorable"] = ZERO_UUID


class ShareGroupCurrentMemberAssignmentKey(Message):
    KEY = 14
    VERSIONS = versions(0, 0)

    group_id: str = ""
    member_id: str = ""


class ShareGroupCurrentMemberAssignmentValue(Message):
    KEY = 14
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TopicPartitions(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[i32] = []

    member_epoch: i32 = 0
    previous_member_epoch: i32 = 0
    state: i8 = 0
    assigned_partitions: list[TopicPartitions] = []


class ShareGroupMemberMetadataKey(Message):
    KEY = 10
    VERSIONS = versions(0, 0)

    group_id: str = ""
    member_id: str = ""


class ShareGroupMemberMetadataValue(Message):
    KEY = 10
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []


class ShareGroupMetadataKey(Message):
    KEY = 11
    VERSIONS = versions(0, 0)

    group_id: str = ""


class ShareGroupMetadataValue(Message):
    KEY = 11
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    epoch: i32 = 0
    metadata_hash: i64 = 0


class ShareGroupStatePartitionMetadataKey(Message):
    KEY = 15
    VERSIONS = versions(0, 0)

    group_id: str = ""


class ShareGroupStatePartitionMetadataValue(Message):
    KEY = 15
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TopicPartitionsInfo(Struct):
        topic_id: Uuid = ZERO_UUID
        topic_name: str = ""
        partitions: list[i32] = []

    class TopicInfo(Struct):
        topic_id: Uuid = ZERO_UUID
        topic_name: str = ""

    initializing_topics: list[TopicPartitionsInfo] = []
    initialized_topics: list[TopicPartitionsInfo] = []
    deleting_topics: list[TopicInfo] = []


class ShareGroupTargetAssignmentMemberKey(Message):
    KEY = 13
    VERSIONS = versions(0, 0)

    group_id: str = ""
    member_id: str = ""


class ShareGroupTargetAssignmentMemberValue(Message):
    KEY = 13
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class TopicPartition(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[i32] = []

    topic_partitions: list[TopicPartition] = []


class ShareGroupTargetAssignmentMetadataKey(Message):
    KEY = 12
    VERSIONS = versions(0, 0)

    group_id: str = ""


class ShareGroupTargetAssignmentMetadataValue(Message):
    KEY = 12
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    assignment_epoch: i32 = 0
    assignment_timestamp: Annotated[i64, "tag 0"] = 0


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
