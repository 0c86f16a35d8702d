"""Metadata (API key 3): v0-13."""

from __future__ import annotations

from typing import Annotated

from headpond.protocol.types import ZERO_UUID, Message, Struct, Uuid, i16, i32, versions


class MetadataRequest(Message):
    KEY = 3
    VERSIONS = versions(0, 13)
    FLEXIBLE = 9

    class MetadataRequestTopic(Struct):
        topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO_UUID
        name: Annotated[str | None, "null 10+"] = ""

    topics: Annotated[list[MetadataRequestTopic] | None, "null 1+"] = []
    allow_auto_topic_creation: Annotated[bool, "4+"] = True
    include_cluster_authorized_operations: Annotated[bool, "8-10"] = False
    include_topic_authorized_operations: Annotated[bool, "8+"] = False


class MetadataResponse(Message):
    KEY = 3
    VERSIONS = versions(0, 13)
    FLEXIBLE = 9

    class MetadataResponseBroker(Struct):
        node_id: i32 = 0
        host: str = ""
        port: i32 = 0
        rack: Annotated[str | None, "1+ ignorable"] = None

    class MetadataResponseTopic(Struct):
        error_code: i16 = 0
        name: Annotated[str | None, "null 12+"] = ""
        topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO_UUID
        is_internal: Annotated[bool, "1+ ignorable"] = False
        partitions: list[MetadataResponse.MetadataResponsePartition] = []
        topic_authorized_operations: Annotated[i32, "8+"] = -2_147_483_648

    class MetadataResponsePartition(Struct):
        error_code: i16 = 0
        partition_index: i32 = 0
        leader_id: i32 = 0
        leader_epoch: Annotated[i32, "7+ ignorable"] = -1
        replica_nodes: list[i32] = []
        isr_nodes: list[i32] = []
        offline_replicas: Annotated[list[i32], "5+ ignorable"] = []

    throttle_time_ms: Annotated[i32, "3+ ignorable"] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[str | None, "2+ ignorable"] = None
    controller_id: Annotated[i32, "1+ ignorable"] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[i32, "8-10"] = -2_147_483_648
    error_code: Annotated[i16, "13+ ignorable"] = 0
