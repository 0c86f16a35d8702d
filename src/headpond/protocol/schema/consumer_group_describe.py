"""ConsumerGroupDescribe (API key 69): v0-1."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i8, i16, i32, versions


class ConsumerGroupDescribeRequest(Message):
    KEY = 69
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    group_ids: list[str] = []
    include_authorized_operations: bool = False


class ConsumerGroupDescribeResponse(Message):
    KEY = 69
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class DescribedGroup(Struct):
        error_code: i16 = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        group_epoch: i32 = 0
        assignment_epoch: i32 = 0
        assignor_name: str = ""
        members: list[ConsumerGroupDescribeResponse.Member] = []
        authorized_operations: i32 = -2_147_483_648

    class Member(Struct):
        member_id: str = ""
        instance_id: str | None = None
        rack_id: str | None = None
        member_epoch: i32 = 0
        client_id: str = ""
        client_host: str = ""
        subscribed_topic_names: list[str] = []
        subscribed_topic_regex: str | None = None
        assignment: ConsumerGroupDescribeResponse.Assignment = field(
            default_factory=lambda: ConsumerGroupDescribeResponse.Assignment()
        )
        target_assignment: ConsumerGroupDescribeResponse.Assignment = field(
            default_factory=lambda: ConsumerGroupDescribeResponse.Assignment()
        )
        member_type: Annotated[i8, "1+ ignorable"] = -1

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = []

    class TopicPartitions(Struct):
        topic_id: Uuid = ZERO_UUID
        topic_name: str = ""
        partitions: list[i32] = []

    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = []
