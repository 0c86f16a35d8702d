"""StreamsGroupHeartbeat (API key 88): v0."""

from __future__ import annotations

from msgspec import field

from headpond.protocol.types import Message, Struct, i8, i16, i32, i64, u16, versions


class StreamsGroupHeartbeatRequest(Message):
    KEY = 88
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class Topology(Struct):
        epoch: i32 = 0
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = []

    class Subtopology(Struct):
        subtopology_id: str = ""
        source_topics: list[str] = []
        source_topic_regex: list[str] = []
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = []
        repartition_sink_topics: list[str] = []
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = []
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = []

    class TopicInfo(Struct):
        name: str = ""
        partitions: i32 = 0
        replication_factor: i16 = 0
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = []

    class KeyValue(Struct):
        key: str = ""
        value: str = ""

    class CopartitionGroup(Struct):
        source_topics: list[i16] = []
        source_topic_regex: list[i16] = []
        repartition_source_topics: list[i16] = []

    class TaskIds(Struct):
        subtopology_id: str = ""
        partitions: list[i32] = []

    class Endpoint(Struct):
        host: str = ""
        port: u16 = 0

    class TaskOffset(Struct):
        subtopology_id: str = ""
        partition: i32 = 0
        offset: i64 = 0

    group_id: str = ""
    member_id: str = ""
    member_epoch: i32 = 0
    endpoint_information_epoch: i32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: i32 = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False


class StreamsGroupHeartbeatResponse(Message):
    KEY = 88
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class Status(Struct):
        status_code: i8 = 0
        status_detail: str = ""

    class TaskIds(Struct):
        subtopology_id: str = ""
        partitions: list[i32] = []

    class EndpointToPartitions(Struct):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = field(
            default_factory=lambda: StreamsGroupHeartbeatResponse.Endpoint()
        )
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = []
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = []

    class Endpoint(Struct):
        host: str = ""
        port: u16 = 0

    class TopicPartition(Struct):
        topic: str = ""
        partitions: list[i32] = []

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    acceptable_recovery_lag: i32 = 0
    task_offset_interval_ms: i32 = 0
    status: list[Status] | None = []
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: i32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
