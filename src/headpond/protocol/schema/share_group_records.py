"""Records in __consumer_offsets: share groups (KIP-932). KEY is the record type."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i8, i32, i64, versions


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
