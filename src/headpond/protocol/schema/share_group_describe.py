"""ShareGroupDescribe (API key 77): v1."""

from __future__ import annotations

from msgspec import field

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, versions


class ShareGroupDescribeRequest(Message):
    KEY = 77
    VERSIONS = versions(1, 1)
    FLEXIBLE = 1

    group_ids: list[str] = []
    include_authorized_operations: bool = False


class ShareGroupDescribeResponse(Message):
    KEY = 77
    VERSIONS = versions(1, 1)
    FLEXIBLE = 1

    class DescribedGroup(Struct):
        error_code: i16 = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        group_epoch: i32 = 0
        assignment_epoch: i32 = 0
        assignor_name: str = ""
        members: list[ShareGroupDescribeResponse.Member] = []
        authorized_operations: i32 = -2_147_483_648

    class Member(Struct):
        member_id: str = ""
        rack_id: str | None = None
        member_epoch: i32 = 0
        client_id: str = ""
        client_host: str = ""
        subscribed_topic_names: list[str] = []
        assignment: ShareGroupDescribeResponse.Assignment = field(
            default_factory=lambda: ShareGroupDescribeResponse.Assignment()
        )

    class Assignment(Struct):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = []

    class TopicPartitions(Struct):
        topic_id: Uuid = ZERO_UUID
        topic_name: str = ""
        partitions: list[i32] = []

    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = []
