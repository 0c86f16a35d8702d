"""Topics made, grown, deleted and described, the cluster described, and the refusals in Kafka's own words."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.protocol.schema.create_partitions import CreatePartitionsRequest
from headpond.protocol.schema.create_topics import CreateTopicsRequest
from headpond.protocol.schema.delete_topics import DeleteTopicsRequest
from headpond.protocol.schema.describe_cluster import DescribeClusterRequest
from headpond.protocol.schema.describe_topic_partitions import DescribeTopicPartitionsRequest
from headpond.protocol.schema.metadata import MetadataRequest
from support.verbs import Topic, create_topic, describe_topic
from support.waiting import eventually
from support.wire import Wire

UNKNOWN_TOPIC, INVALID_TOPIC, ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_RF = 3, 17, 36, 37, 38
INVALID_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST, UNKNOWN_ID = 39, 40, 42, 100
NO_ID = bytes(16)
NOT_ASKED = -(2**31)


def create(wire: Wire, *topics: dict[str, Any], version: int = 7, validate_only: bool = False) -> list[Any]:
    made = []
    for topic in topics:
        fields = {"num_partitions": 1, "replication_factor": 1, **topic}
        fields["configs"] = [
            CreateTopicsRequest.CreatableTopicConfig(name=k, value=v) for k, v in fields.get("configs", {}).items()
        ]
        fields["assignments"] = [
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=p, broker_ids=ids)
            for p, ids in fields.get("assignments", {}).items()
        ]
        made.append(CreateTopicsRequest.CreatableTopic(**fields))
    request = CreateTopicsRequest(topics=made, timeout_ms=30_000, validate_only=validate_only)
    return list(wire.call(request, version).topics)


def broker_id(wire: Wire) -> int:
    return int(wire.call(MetadataRequest(topics=[]), 12).brokers[0].node_id)


def metadata(wire: Wire, *names: str, version: int = 12, auto: bool = False, **fields: Any) -> Any:
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return wire.call(MetadataRequest(topics=topics, allow_auto_topic_creation=auto, **fields), version)


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates_and_says_what_it_knows(wire: Wire, topic_name: str, version: int) -> None:
    (answer,) = create(wire, {"name": topic_name, "num_partitions": 2}, version=version)
    assert (answer.name, answer.error_code) == (topic_name, 0)
    found = eventually(lambda: describe_topic(wire, topic_name), retry_on=(AssertionError,))
    if version >= 5:
        assert (answer.num_partitions, answer.replication_factor) == (2, 1)
        configs = {c.name: (c.value, c.config_source) for c in answer.configs}
        assert configs["cleanup.policy"] == ("delete", 5)
    if version >= 7:
        assert answer.topic_id == found.id != NO_ID


def test_validate_only_changes_nothing(wire: Wire, topic_name: str) -> None:
    (answer,) = create(wire, {"name": topic_name, "num_partitions": 2}, validate_only=True)
    assert (answer.error_code, answer.num_partitions) == (0, 2)
    assert metadata(wire, topic_name).topics[0].error_code == UNKNOWN_TOPIC


def test_minus_one_means_the_broker_s_default(wire: Wire, topic_name: str) -> None:
    (answer,) = create(wire, {"name": topic_name, "num_partitions": -1, "replication_factor": -1})
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (0, 1, 1)


def test_replicas_may_be_placed_by_hand(wire: Wire, topic_name: str) -> None:
    me = broker_id(wire)
    by_hand = {"num_partitions": -1, "replication_factor": -1}
    (answer,) = create(wire, {"name": topic_name, **by_hand, "assignments": {0: [me], 1: [me]}})
    assert (answer.error_code, answer.num_partitions) == (0, 2)
    (answer,) = create(wire, {"name": topic_name + "-2", **by_hand, "assignments": {1: [me]}})
    assert answer.error_code == INVALID_ASSIGNMENT
    (answer,) = create(wire, {"name": topic_name + "-3", **by_hand, "assignments": {0: [99]}})
    assert answer.error_code == INVALID_ASSIGNMENT
    (answer,) = create(wire, {"name": topic_name + "-4", "assignments": {0: [me]}})
    assert answer.error_code == INVALID_REQUEST


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"num_partitions": 0}, INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."),
        ({"num_partitions": -2}, INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."),
        ({"replication_factor": 0}, INVALID_RF, "Replication factor must be larger than 0"),
        ({"replication_factor": 3}, INVALID_RF, "The target replication factor of 3 cannot be reached because only 1"),
        ({"configs": {"foo": "x"}}, INVALID_CONFIG, "Unknown topic config name: foo"),
        ({"configs": {"retention.ms": None}}, INVALID_CONFIG, "Null value not supported for topic configs"),
        (
            {"configs": {"retention.ms": "x"}},
            INVALID_CONFIG,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_topic_that_can_t_be_is_refused_in_kafka_s_words(
    wire: Wire, topic_name: str, fields: dict[str, Any], code: int, message: str
) -> None:
    (answer,) = create(wire, {"name": topic_name, **fields})
    assert answer.error_code == code
    assert message in answer.error_message
    assert metadata(wire, topic_name).topics[0].error_code == UNKNOWN_TOPIC


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a b", "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ünï", "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("x" * 250, "is longer than the max allowed length 249"),
    ],
)
def test_a_bad_name_is_refused_in_kafka_s_words(wire: Wire, name: str, message: str) -> None:
    (answer,) = create(wire, {"name": name})
    assert (answer.error_code, message in answer.error_message) == (INVALID_TOPIC, True)


def test_the_same_name_twice_in_a_request_is_refused_and_the_others_are_made(wire: Wire, topic_name: str) -> None:
    twice, other = {"name": topic_name}, {"name": topic_name + "-other"}
    answers = {a.name: (a.error_code, a.error_message) for a in create(wire, twice, other, twice)}
    assert answers == {topic_name: (INVALID_REQUEST, "Duplicate topic name."), topic_name + "-other": (0, None)}


def test_an_existing_or_colliding_name_is_refused(wire: Wire, topic_name: str) -> None:
    create_topic(wire, topic_name + ".x")
    for validate_only in (False, True):
        (answer,) = create(wire, {"name": topic_name + ".x"}, validate_only=validate_only)
        assert (answer.error_code, answer.error_message) == (
            ALREADY_EXISTS,
            f"Topic '{topic_name}.x' already exists.",
        )
    (answer,) = create(wire, {"name": topic_name + "_x"})
    assert (answer.error_code, "collides with existing topic" in answer.error_message) == (INVALID_TOPIC, True)


def delete(wire: Wire, *, names: tuple[str, ...] = (), ids: tuple[bytes, ...] = (), version: int = 6) -> list[Any]:
    if version < 6:
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=30_000)
    else:
        states = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
        states += [DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=topic_id) for topic_id in ids]
        request = DeleteTopicsRequest(topics=states, timeout_ms=30_000)
    return list(wire.call(request, version).responses)


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes_by_name(wire: Wire, topic: Topic, version: int) -> None:
    answers = delete(wire, names=(topic.name, "no-" + topic.name), version=version)
    assert {a.name: a.error_code for a in answers} == {topic.name: 0, "no-" + topic.name: UNKNOWN_TOPIC}
    eventually(lambda: metadata(wire, topic.name).topics[0].error_code == UNKNOWN_TOPIC)


def test_a_topic_is_deleted_by_its_id_and_an_unknown_id_is_said_so(wire: Wire, topic: Topic) -> None:
    answers = delete(wire, ids=(topic.id, bytes(range(16))))
    assert {a.topic_id: (a.name, a.error_code) for a in answers} == {
        topic.id: (topic.name, 0),
        bytes(range(16)): (None, UNKNOWN_ID),
    }


def test_a_topic_named_twice_in_one_deletion_is_not_deleted(wire: Wire, topic: Topic) -> None:
    (answer,) = delete(wire, names=(topic.name,), ids=(topic.id,))
    assert answer.error_code == INVALID_REQUEST
    assert metadata(wire, topic.name).topics[0].error_code == 0


def add(wire: Wire, name: str, count: int, *, version: int = 3, validate_only: bool = False, on: Any = None) -> Any:
    assignments = on and [CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=ids) for ids in on]
    entry = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=assignments)
    request = CreatePartitionsRequest(topics=[entry], timeout_ms=30_000, validate_only=validate_only)
    return wire.call(request, version).results[0]


@pytest.mark.parametrize("version", range(0, 4))
def test_every_version_adds_partitions(wire: Wire, topic: Topic, version: int) -> None:
    assert add(wire, topic.name, 3, version=version).error_code == 0
    eventually(lambda: len(metadata(wire, topic.name).topics[0].partitions) == 3)


def test_adding_partitions_checks_what_it_is_given(wire: Wire, topic: Topic) -> None:
    me = broker_id(wire)
    assert add(wire, topic.name, 5, validate_only=True).error_code == 0
    assert len(metadata(wire, topic.name).topics[0].partitions) == 1
    same, fewer = add(wire, topic.name, 1), add(wire, topic.name, 0)
    assert (same.error_code, same.error_message) == (INVALID_PARTITIONS, "Topic already has 1 partition(s).")
    assert fewer.error_code == INVALID_PARTITIONS
    assert "currently has 1 partition(s); 0 would not be an increase." in fewer.error_message
    assert add(wire, "no-" + topic.name, 2).error_code == UNKNOWN_TOPIC
    assert add(wire, topic.name, 3, on=[[me]]).error_code == INVALID_ASSIGNMENT
    assert add(wire, topic.name, 2, on=[[99]]).error_code == INVALID_ASSIGNMENT
    assert add(wire, topic.name, 2, on=[[me]]).error_code == 0


@pytest.mark.parametrize("version", range(0, 14))
def test_every_version_of_metadata_describes_the_topic_and_the_broker(
    wire: Wire, topic_name: str, bootstrap: str, version: int
) -> None:
    topic = create_topic(wire, topic_name, partitions=3)
    response = metadata(wire, topic.name, version=version, auto=True)
    (broker,) = response.brokers
    assert f"{broker.host}:{broker.port}" == bootstrap
    (found,) = response.topics
    assert (found.error_code, found.name, found.is_internal) == (0, topic.name, False)
    assert found.topic_id == (topic.id if version >= 10 else NO_ID)
    for index, part in enumerate(sorted(found.partitions, key=lambda p: p.partition_index)):
        assert (part.error_code, part.partition_index, part.leader_id) == (0, index, broker.node_id)
        assert (part.replica_nodes, part.isr_nodes, part.offline_replicas) == ([broker.node_id], [broker.node_id], [])
        assert (part.leader_epoch >= 0) == (version >= 7)
    assert bool(response.cluster_id) == (version >= 2)


def test_metadata_of_all_topics_and_of_none(wire: Wire, topic: Topic) -> None:
    assert topic.name in {t.name for t in wire.call(MetadataRequest(topics=[]), 0).topics}
    assert topic.name in {t.name for t in wire.call(MetadataRequest(topics=None), 1).topics}
    assert wire.call(MetadataRequest(topics=[]), 1).topics == []


def test_metadata_answers_by_id(wire: Wire, topic: Topic) -> None:
    ids = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=i) for i in (topic.id, bytes(range(16)))]
    found = wire.call(MetadataRequest(topics=ids, allow_auto_topic_creation=False), 12).topics
    assert {t.topic_id: (t.error_code, t.name) for t in found} == {
        topic.id: (0, topic.name),
        bytes(range(16)): (UNKNOWN_ID, None),
    }


def test_unknown_and_bad_names_in_metadata(wire: Wire, topic_name: str) -> None:
    unknown, bad = metadata(wire, topic_name).topics[0], metadata(wire, "a b", auto=True).topics[0]
    assert (unknown.error_code, unknown.partitions) == (UNKNOWN_TOPIC, [])
    assert (bad.error_code, bad.partitions) == (INVALID_TOPIC, [])
    assert metadata(wire, topic_name).topics[0].error_code == UNKNOWN_TOPIC, "asking did not create it"


def test_asking_for_a_topic_creates_it_if_the_asker_allows_and_says_error_3_first(wire: Wire, topic_name: str) -> None:
    assert metadata(wire, topic_name, auto=True).topics[0].error_code == UNKNOWN_TOPIC
    found = eventually(lambda: describe_topic(wire, topic_name), retry_on=(AssertionError,))
    assert found.id != NO_ID


def test_authorized_operations_are_told_when_asked_for(wire: Wire, topic: Topic) -> None:
    plain = metadata(wire, topic.name, version=8)
    assert (plain.cluster_authorized_operations, plain.topics[0].topic_authorized_operations) == (NOT_ASKED, NOT_ASKED)
    asked = metadata(
        wire,
        topic.name,
        version=8,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    assert (asked.cluster_authorized_operations, asked.topics[0].topic_authorized_operations) == (8096, 3576)


def test_topic_partitions_are_described_in_pages(wire: Wire, topic_name: str) -> None:
    topic = create_topic(wire, topic_name, partitions=5)
    names = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in (topic.name, "a-no-" + topic.name)]
    whole = wire.call(DescribeTopicPartitionsRequest(topics=names), 0)
    assert [t.error_code for t in whole.topics] == [UNKNOWN_TOPIC, 0], "sorted by name"
    assert (whole.topics[1].topic_id, len(whole.topics[1].partitions)) == (topic.id, 5)
    seen: list[int] = []
    cursor = None
    while True:
        request = DescribeTopicPartitionsRequest(topics=names[:1], response_partition_limit=2, cursor=cursor)
        page = wire.call(request, 0)
        seen += [p.partition_index for p in page.topics[0].partitions]
        if page.next_cursor is None:
            break
        at = page.next_cursor
        cursor = DescribeTopicPartitionsRequest.Cursor(topic_name=at.topic_name, partition_index=at.partition_index)
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_cluster_describes_itself(wire: Wire, bootstrap: str, version: int) -> None:
    response = wire.call(DescribeClusterRequest(), version)
    assert (response.error_code, response.cluster_authorized_operations) == (0, NOT_ASKED)
    assert response.cluster_id == wire.call(MetadataRequest(topics=[]), 12).cluster_id
    assert [f"{b.host}:{b.port}" for b in response.brokers] == [bootstrap]
    asked = wire.call(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    assert asked.cluster_authorized_operations == 8096


def test_a_controller_s_endpoint_is_not_here(wire: Wire) -> None:
    answers = [wire.call(DescribeClusterRequest(endpoint_type=kind), 1).error_code for kind in (2, 3)]
    assert answers == [114, 115]
