"""ConsumerGroupHeartbeat (API key 68): v0-1."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, versions


class ConsumerGroupHeartbeatRequest(Message):
    KEY = 68
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class TopicPartitions(Struct):
        topic_id: Uuid = ZERO_UUID
        partitions: list[i32] = []

    group_id: str = ""
    member_id: str = ""
    member_epoch: i32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: i32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: Annotated[str | None, "1+"] = None
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None


class ConsumerGroupHeartbeatResponse(Message):
    KEY = 68
    VERSIONS = versions(0, 1)
    FLEXIBLE = 0

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = []

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
