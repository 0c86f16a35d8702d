"""CreateTopics (API key 19): v2-7."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i8, i16, i32, versions


class CreateTopicsRequest(Message):
    KEY = 19
    VERSIONS = versions(2, 7)
    FLEXIBLE = 5

    class CreatableTopic(Struct):
        name: str = ""
        num_partitions: i32 = 0
        replication_factor: i16 = 0
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = []
        configs: list[CreateTopicsRequest.CreatableTopicConfig] = []

    class CreatableReplicaAssignment(Struct):
        partition_index: i32 = 0
        broker_ids: list[i32] = []

    class CreatableTopicConfig(Struct):
        name: str = ""
        value: str | None = ""

    topics: list[CreatableTopic] = []
    timeout_ms: i32 = 60000
    validate_only: bool = False


class CreateTopicsResponse(Message):
    KEY = 19
    VERSIONS = versions(2, 7)
    FLEXIBLE = 5

    class CreatableTopicResult(Struct):
        name: str = ""
        topic_id: Annotated[Uuid, "7+ ignorable"] = ZERO_UUID
        error_code: i16 = 0
        error_message: str | None = ""
        topic_config_error_code: Annotated[i16, "5+ tag 0 ignorable"] = 0
        num_partitions: Annotated[i32, "5+ ignorable"] = -1
        replication_factor: Annotated[i16, "5+ ignorable"] = -1
        configs: Annotated[list[CreateTopicsResponse.CreatableTopicConfigs] | None, "5+ ignorable"] = []

    class CreatableTopicConfigs(Struct):
        name: str = ""
        value: str | None = ""
        read_only: bool = False
        config_source: i8 = -1
        is_sensitive: bool = False

    throttle_time_ms: i32 = 0
    topics: list[CreatableTopicResult] = []
