"""StreamsGroupDescribe (API key 89): v0."""

from __future__ import annotations

from msgspec import field

from headpond.protocol.types import Message, Struct, i16, i32, i64, u16, versions


class StreamsGroupDescribeRequest(Message):
    KEY = 89
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    group_ids: list[str] = []
    include_authorized_operations: bool = False


class StreamsGroupDescribeResponse(Message):
    KEY = 89
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    class DescribedGroup(Struct):
        error_code: i16 = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        group_epoch: i32 = 0
        assignment_epoch: i32 = 0
        topology: StreamsGroupDescribeResponse.Topology | None = None
        members: list[StreamsGroupDescribeResponse.Member] = []
        authorized_operations: i32 = -2_147_483_648

    class Topology(Struct):
        epoch: i32 = 0
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = None

    class Subtopology(Struct):
        subtopology_id: str = ""
        source_topics: list[str] = []
        repartition_sink_topics: list[str] = []
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = []
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = []

    class TopicInfo(Struct):
        name: str = ""
        partitions: i32 = 0
        replication_factor: i16 = 0
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = []

    class KeyValue(Struct):
        key: str = ""
        value: str = ""

    class Member(Struct):
        member_id: str = ""
        member_epoch: i32 = 0
        instance_id: str | None = None
        rack_id: str | None = None
        client_id: str = ""
        client_host: str = ""
        topology_epoch: i32 = 0
        process_id: str = ""
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = None
        client_tags: list[StreamsGroupDescribeResponse.KeyValue] = []
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = []
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = []
        assignment: StreamsGroupDescribeResponse.Assignment = field(
            default_factory=lambda: StreamsGroupDescribeResponse.Assignment()
        )
        target_assignment: StreamsGroupDescribeResponse.Assignment = field(
            default_factory=lambda: StreamsGroupDescribeResponse.Assignment()
        )
        is_classic: bool = False

    class Endpoint(Struct):
        host: str = ""
        port: u16 = 0

    class TaskOffset(Struct):
        subtopology_id: str = ""
        partition: i32 = 0
        offset: i64 = 0

    class Assignment(Struct):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = []
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = []
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = []

    class TaskIds(Struct):
        subtopology_id: str = ""
        partitions: list[i32] = []

    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = []
