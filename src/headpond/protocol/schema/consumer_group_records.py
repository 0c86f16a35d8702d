"""Records in __consumer_offsets: consumer groups (KIP-848). KEY is the record type."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i8, i32, i64, versions


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
