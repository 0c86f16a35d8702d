"""ShareGroupHeartbeat (API key 76): v1."""

from __future__ import annotations

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, versions


class ShareGroupHeartbeatRequest(Message):
    KEY = 76
    VERSIONS = versions(1, 1)
    FLEXIBLE = 1

    group_id: str = ""
    member_id: str = ""
    member_epoch: i32 = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


class ShareGroupHeartbeatResponse(Message):
    KEY = 76
    VERSIONS = versions(1, 1)
    FLEXIBLE = 1

    class Assignment(Struct):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = []

    class TopicPartitions(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[i32] = []

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    assignment: Assignment | None = None
