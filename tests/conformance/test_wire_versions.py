"""Every version of every API that is served: a sensible request gets an answer that decodes to its last byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headpond.protocol.apis import APIS
from headpond.protocol.schema.alter_configs import AlterConfigsRequest
from headpond.protocol.schema.api_versions import ApiVersionsRequest
from headpond.protocol.schema.consumer_group_describe import ConsumerGroupDescribeRequest
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headpond.protocol.schema.create_partitions import CreatePartitionsRequest
from headpond.protocol.schema.create_topics import CreateTopicsRequest
from headpond.protocol.schema.delete_groups import DeleteGroupsRequest
from headpond.protocol.schema.delete_records import DeleteRecordsRequest
from headpond.protocol.schema.delete_topics import DeleteTopicsRequest
from headpond.protocol.schema.describe_cluster import DescribeClusterRequest
from headpond.protocol.schema.describe_configs import DescribeConfigsRequest
from headpond.protocol.schema.describe_groups import DescribeGroupsRequest
from headpond.protocol.schema.describe_log_dirs import DescribeLogDirsRequest
from headpond.protocol.schema.describe_topic_partitions import DescribeTopicPartitionsRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.heartbeat import HeartbeatRequest
from headpond.protocol.schema.incremental_alter_configs import IncrementalAlterConfigsRequest
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.leave_group import LeaveGroupRequest
from headpond.protocol.schema.list_config_resources import ListConfigResourcesRequest
from headpond.protocol.schema.list_groups import ListGroupsRequest
from headpond.protocol.schema.list_offsets import ListOffsetsRequest
from headpond.protocol.schema.metadata import MetadataRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_delete import OffsetDeleteRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from headpond.protocol.schema.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from headpond.protocol.schema.sasl_handshake import SaslHandshakeRequest
from headpond.protocol.schema.sync_group import SyncGroupRequest
from support.batches import build
from support.served import SERVED
from support.verbs import Topic, fetch_partition, fetch_request, produce_request
from support.wire import API_KEYS, Wire

COORDINATOR_NOT_AVAILABLE, ILLEGAL_SASL_STATE = 15, 34
COORDINATOR_ON_ITS_WAY = {14, COORDINATOR_NOT_AVAILABLE, 16}
UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND = 25, 69


def _alter(message: Any, topic: Topic, **entry: Any) -> Any:
    row = message.AlterableConfig(name="flush.ms", value="1000", **entry)
    return message(
        resources=[message.AlterConfigsResource(resource_type=2, resource_name=topic.name, configs=[row])],
        validate_only=False,
    )


def _delete_topics(topic: Topic, version: int) -> Any:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[topic.name], timeout_ms=10_000)
    state = DeleteTopicsRequest.DeleteTopicState(name=topic.name)
    return DeleteTopicsRequest(topics=[state], timeout_ms=10_000)


def _one(message: Any, entry: str, part: str, topic: Topic, part_fields: dict[str, Any], **fields: Any) -> Any:
    """A request of the common shape: one topic, one partition."""
    named = {"topic": topic.name} if entry == "OffsetForLeaderTopic" else {"name": topic.name}
    rows = [getattr(message, part)(**part_fields)]
    return message(topics=[getattr(message, entry)(partitions=rows, **named)], **fields)


def _commit(topic: Topic, version: int) -> Any:
    rows = [OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    named: dict[str, Any] = {"topic_id": topic.id} if version >= 10 else {"name": topic.name}
    return OffsetCommitRequest(
        group_id=topic.name, topics=[OffsetCommitRequest.OffsetCommitRequestTopic(partitions=rows, **named)]
    )


def _fetch_offsets(topic: Topic, version: int) -> Any:
    if version < 8:
        old = OffsetFetchRequest.OffsetFetchRequestTopic(name=topic.name, partition_indexes=[0])
        return OffsetFetchRequest(group_id=topic.name, topics=[old])
    named: dict[str, Any] = {"topic_id": topic.id} if version >= 10 else {"name": topic.name}
    new = OffsetFetchRequest.OffsetFetchRequestTopics(partition_indexes=[0], **named)
    return OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=topic.name, topics=[new])])


REQUESTS: dict[str, Callable[[Topic, int], Any]] = {
    "Produce": lambda t, v: produce_request(t, build([b"x"]), version=v),
    "Fetch": lambda t, v: fetch_request({t: [fetch_partition()]}, version=v),
    "ListOffsets": lambda t, v: _one(
        ListOffsetsRequest,
        "ListOffsetsTopic",
        "ListOffsetsPartition",
        t,
        {"partition_index": 0, "timestamp": -1},
        replica_id=-1,
    ),
    "Metadata": lambda t, v: MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=t.name)]),
    "FindCoordinator": lambda t, v: (
        FindCoordinatorRequest(key="group") if v < 4 else FindCoordinatorRequest(coordinator_keys=["group"])
    ),
    "OffsetCommit": _commit,
    "OffsetFetch": _fetch_offsets,
    "JoinGroup": lambda t, v: JoinGroupRequest(group_id=t.name, member_id="a stranger", session_timeout_ms=10_000),
    "Heartbeat": lambda t, v: HeartbeatRequest(group_id=t.name, member_id="a stranger"),
    "LeaveGroup": lambda t, v: LeaveGroupRequest(group_id=t.name, **({"member_id": "a stranger"} if v < 3 else {})),
    "SyncGroup": lambda t, v: SyncGroupRequest(
        group_id=t.name,
        member_id="a stranger",
        **({"protocol_type": "consumer", "protocol_name": "range"} if v >= 5 else {}),
    ),
    "DescribeGroups": lambda t, v: DescribeGroupsRequest(groups=[t.name]),
    "ListGroups": lambda t, v: ListGroupsRequest(),
    "DeleteGroups": lambda t, v: DeleteGroupsRequest(groups_names=[t.name]),
    "OffsetDelete": lambda t, v: OffsetDeleteRequest(group_id=t.name),
    "ConsumerGroupHeartbeat": lambda t, v: ConsumerGroupHeartbeatRequest(
        group_id=t.name, member_id="a stranger", member_epoch=1
    ),
    "ConsumerGroupDescribe": lambda t, v: ConsumerGroupDescribeRequest(group_ids=[t.name]),
    "SaslHandshake": lambda t, v: SaslHandshakeRequest(mechanism="PLAIN"),
    "ApiVersions": lambda t, v: ApiVersionsRequest(client_software_name="wire", client_software_version="1"),
    "CreateTopics": lambda t, v: CreateTopicsRequest(
        topics=[CreateTopicsRequest.CreatableTopic(name=t.name + "-more", num_partitions=1, replication_factor=1)],
        timeout_ms=10_000,
    ),
    "DeleteTopics": _delete_topics,
    "DeleteRecords": lambda t, v: _one(
        DeleteRecordsRequest,
        "DeleteRecordsTopic",
        "DeleteRecordsPartition",
        t,
        {"partition_index": 0, "offset": 0},
        timeout_ms=10_000,
    ),
    "InitProducerId": lambda t, v: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000),
    "OffsetForLeaderEpoch": lambda t, v: _one(
        OffsetForLeaderEpochRequest,
        "OffsetForLeaderTopic",
        "OffsetForLeaderPartition",
        t,
        {"partition": 0, "leader_epoch": 0},
        replica_id=-1,
    ),
    "DescribeConfigs": lambda t, v: DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=2, resource_name=t.name, configuration_keys=None
            )
        ],
        include_synonyms=True,
    ),
    "AlterConfigs": lambda t, v: _alter(AlterConfigsRequest, t),
    "DescribeLogDirs": lambda t, v: DescribeLogDirsRequest(topics=None),
    "CreatePartitions": lambda t, v: CreatePartitionsRequest(
        topics=[CreatePartitionsRequest.CreatePartitionsTopic(name=t.name, count=2, assignments=None)],
        timeout_ms=10_000,
    ),
    "IncrementalAlterConfigs": lambda t, v: _alter(IncrementalAlterConfigsRequest, t, config_operation=0),
    "DescribeCluster": lambda t, v: DescribeClusterRequest(),
    "ListConfigResources": lambda t, v: ListConfigResourcesRequest(),
    "DescribeTopicPartitions": lambda t, v: DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=t.name)]
    ),
}
ALLOWED = {
    # Their answers in full are in test_wire_groups; here a coordinator may still be on its way.
    "OffsetCommit": {0, *COORDINATOR_ON_ITS_WAY},
    "OffsetFetch": {0, *COORDINATOR_ON_ITS_WAY},
    "FindCoordinator": {0, COORDINATOR_NOT_AVAILABLE},
    "JoinGroup": {UNKNOWN_MEMBER_ID, *COORDINATOR_ON_ITS_WAY},
    "Heartbeat": {0, UNKNOWN_MEMBER_ID, *COORDINATOR_ON_ITS_WAY},
    "LeaveGroup": {0, UNKNOWN_MEMBER_ID, *COORDINATOR_ON_ITS_WAY},
    "SyncGroup": {UNKNOWN_MEMBER_ID, *COORDINATOR_ON_ITS_WAY},
    "DescribeGroups": {0, GROUP_ID_NOT_FOUND, *COORDINATOR_ON_ITS_WAY},
    "ListGroups": {0, *COORDINATOR_ON_ITS_WAY},
    "DeleteGroups": {GROUP_ID_NOT_FOUND, *COORDINATOR_ON_ITS_WAY},
    "OffsetDelete": {GROUP_ID_NOT_FOUND, *COORDINATOR_ON_ITS_WAY},
    "ConsumerGroupHeartbeat": {GROUP_ID_NOT_FOUND, *COORDINATOR_ON_ITS_WAY},
    "ConsumerGroupDescribe": {GROUP_ID_NOT_FOUND, *COORDINATOR_ON_ITS_WAY},
    "SaslHandshake": {ILLEGAL_SASL_STATE},
    "InitProducerId": {0, 14},
}
EVERY = [(name, v) for name in REQUESTS for v in APIS[API_KEYS[name]].versions]


def error_codes(message: Any) -> set[int]:
    """Every error code anywhere in a message."""
    found: set[int] = set()
    for field in message.__struct_fields__:
        value = getattr(message, field)
        if field == "error_code":
            found.add(value)
        for item in value if isinstance(value, list) else [value]:
            if hasattr(item, "__struct_fields__"):
                found |= error_codes(item)
    return found


@pytest.mark.parametrize(("name", "version"), EVERY, ids=[f"{name}-v{v}" for name, v in EVERY])
def test_a_sensible_request_gets_a_sensible_answer(wire: Wire, topic: Topic, name: str, version: int) -> None:
    answer = wire.call(REQUESTS[name](topic, version), version)
    assert error_codes(answer) <= ALLOWED.get(name, {0}), answer
    assert getattr(answer, "throttle_time_ms", 0) == 0


def test_every_api_of_the_handlers_is_asked_here() -> None:
    assert set(REQUESTS) == set(SERVED)
