"""CreateTopics, DeleteTopics and CreatePartitions. The expected codes and messages are the answers of Apache Kafka
4.3.1 to the same requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headpond.broker.handlers.topics import create_partitions, create_topics, delete_topics
from headpond.broker.requests.context import Principal
from headpond.broker.security.authorizer import Operation, ResourceType
from headpond.cluster.topics import NewTopic
from headpond.model import ZERO_TOPIC_ID
from headpond.protocol.schema.create_partitions import CreatePartitionsRequest
from headpond.protocol.schema.create_topics import CreateTopicsRequest
from headpond.protocol.schema.delete_topics import DeleteTopicsRequest
from unit.broker.asking import Asker
from unit.cluster.small_cluster import SmallCluster, with_cluster

Topic = CreateTopicsRequest.CreatableTopic
Replicas = CreateTopicsRequest.CreatableReplicaAssignment
Setting = CreateTopicsRequest.CreatableTopicConfig
ToDelete = DeleteTopicsRequest.DeleteTopicState
Larger = CreatePartitionsRequest.CreatePartitionsTopic
NewReplicas = CreatePartitionsRequest.CreatePartitionsAssignment


def new(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> Topic:
    return Topic(name=name, num_partitions=partitions, replication_factor=factor, **more)


def assigned(*replicas: tuple[int, list[int]], partitions: int = -1, factor: int = -1) -> Topic:
    assignments = [Replicas(partition_index=index, broker_ids=ids) for index, ids in replicas]
    return new("n", partitions, factor, assignments=assignments)


def with_setting(name: str, value: str | None, partitions: int = 1) -> Topic:
    return new("n", partitions, configs=[Setting(name=name, value=value)])


def with_asker(scenario: Callable[[Asker], Awaitable[None]], **options: Any) -> None:
    async def play(cluster: SmallCluster) -> None:
        await scenario(Asker(cluster, **options))

    with_cluster(play)


async def create(asker: Asker, *topics: Topic, version: int = 7, timeout_ms: int = 10_000, **more: Any) -> Any:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, **more)
    return (await asker.ask(create_topics, version, request)).topics


async def delete(asker: Asker, *topics: ToDelete, timeout_ms: int = 10_000) -> list[tuple[Any, ...]]:
    request = DeleteTopicsRequest(topics=list(topics), timeout_ms=timeout_ms)
    results = (await asker.ask(delete_topics, 6, request)).responses
    return [(each.name, each.topic_id, each.error_code, each.error_message) for each in results]


async def enlarge(asker: Asker, *topics: Larger, timeout_ms: int = 10_000, **more: Any) -> list[tuple[Any, ...]]:
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=timeout_ms, **more)
    results = (await asker.ask(create_partitions, 3, request)).results
    return [(each.name, each.error_code, each.error_message) for each in results]


ILLEGAL = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
TOO_FEW = (
    "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only 1 "
    "broker(s) are registered or some brokers have all their log directories cordoned."
)
NO_FACTOR = "Replication factor must be larger than 0, or -1 to use the default value."
NO_PARTITIONS = "Number of partitions was set to an invalid non-positive value."
MANUAL = "The manual partition assignment includes"
TOO_MANY = "Excessively large number of partitions per request."

REFUSED_CREATIONS = [
    (new("exists"), 36, "Topic 'exists' already exists."),
    (new(""), 17, "Topic name is invalid: the empty string is not allowed"),
    (new("."), 17, "Topic name is invalid: '.' is not allowed"),
    (new("a b"), 17, f"Topic name is invalid: 'a b' {ILLEGAL}"),
    (new("exists_with.marks"), 17, "Topic 'exists_with.marks' collides with existing topic: exists.with_marks"),
    (new("__cluster_metadata"), 42, "Creation of internal topic __cluster_metadata is prohibited."),
    (new("n", 0), 37, NO_PARTITIONS),
    (new("n", -2), 37, NO_PARTITIONS),
    (new("n", 1, 0), 38, NO_FACTOR),
    (new("n", 1, -2), 38, NO_FACTOR),
    (new("n", 0, 0), 38, NO_FACTOR),
    (new("n", 1, 3), 38, TOO_FEW),
    (new("n", 20_000), 44, TOO_MANY),
    (new("n", 20_000, 0), 44, TOO_MANY),
    (new("n", 10_000), 44, "Unable to perform excessively large batch operation."),
    (with_setting("nope", "1"), 40, "Unknown topic config name: nope"),
    (with_setting("nope", "1", partitions=0), 40, "Unknown topic config name: nope"),
    (
        with_setting("retention.ms", "x"),
        40,
        "Invalid value x for configuration retention.ms: Not a number of type LONG",
    ),
    (with_setting("retention.ms", None), 40, "Null value not supported for topic configs: retention.ms"),
    (
        assigned((0, [1]), partitions=1),
        42,
        "A manual partition assignment was specified, but numPartitions was not set to -1.",
    ),
    (
        assigned((0, [1]), factor=1),
        42,
        "A manual partition assignment was specified, but replication factor was not set to -1.",
    ),
    (assigned((0, [1]), (0, [1])), 39, "Found multiple manual partition assignments for partition 0"),
    (assigned((1, [1])), 39, "partitions should be a consecutive 0-based integer sequence"),
    (assigned((0, [7])), 39, f"{MANUAL} broker 7, but no such broker is registered."),
    (assigned((0, [1, 1])), 39, f"{MANUAL} the broker 1 more than once."),
    (assigned((0, [])), 39, f"{MANUAL} an empty replica list."),
]


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(("topic", "code", "message"), REFUSED_CREATIONS)
def test_a_creation_is_refused_as_kafka_refuses_it(topic: Topic, code: int, message: str, validate_only: bool) -> None:
    async def scenario(asker: Asker) -> None:
        await create(asker, new("exists"), new("exists.with_marks"))
        revision = asker.cluster.server.revision
        (result,) = await create(asker, topic, validate_only=validate_only)
        assert (result.error_code, result.error_message) == (code, message)
        assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, [])
        assert result.topic_id == ZERO_TOPIC_ID
        assert asker.cluster.server.revision == revision

    with_asker(scenario)


def test_a_created_topic_is_described_in_the_answer() -> None:
    async def scenario(asker: Asker) -> None:
        (result,) = await create(asker, new("a", 3, configs=[Setting(name="retention.ms", value="5")]))
        assert (result.error_code, result.error_message, result.topic_config_error_code) == (0, None, 0)
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert result.topic_id == asker.cluster.image.topics["a"].topic_id
        names = [setting.name for setting in result.configs]
        assert names == sorted(names) and len(names) > 30
        by_name = {setting.name: (setting.value, setting.config_source) for setting in result.configs}
        assert by_name["retention.ms"] == ("5", 1)
        assert by_name["cleanup.policy"] == ("delete", 5)
        assert by_name["segment.bytes"] == ("2000000", 4)

    with_asker(scenario, static={"log.segment.bytes": "2000000"})


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates_with_the_defaults_of_the_broker(version: int) -> None:
    async def scenario(asker: Asker) -> None:
        (result,) = await create(asker, new("a", -1, -1), version=version)
        assert (result.error_code, result.error_message) == (0, None)
        assert len(asker.cluster.image.topics["a"].partitions) == 1
        assert (result.num_partitions == 1) == (version >= 5)

    with_asker(scenario)


def test_replicas_are_where_the_request_puts_them() -> None:
    async def scenario(asker: Asker) -> None:
        await create(asker, assigned((1, [1]), (0, [1])))
        assert [state.replicas for state in asker.cluster.image.topics["n"].partitions] == [(1,), (1,)]

    with_asker(scenario)


def test_one_topic_s_failure_does_not_fail_its_neighbours_and_a_name_given_twice_fails_once() -> None:
    async def scenario(asker: Asker) -> None:
        results = await create(asker, new("twice"), new("b"), new(""), new("twice"), new("a"))
        assert [(each.name, each.error_code) for each in results] == [("b", 0), ("", 17), ("a", 0), ("twice", 42)]
        assert results[-1].error_message == "Duplicate topic name."
        assert sorted(asker.cluster.image.topics) == ["a", "b"]

    with_asker(scenario)


def test_a_request_for_too_many_partitions_fails_as_a_whole() -> None:
    async def scenario(asker: Asker) -> None:
        results = await create(asker, new("a", 6_000), new("b", 6_000), new(""), new("c"), new("c"))
        assert [each.error_code for each in results] == [44, 44, 44, 42]

    with_asker(scenario)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_no_time_at_all_is_up_before_anything_was_tried(timeout_ms: int) -> None:
    async def scenario(asker: Asker) -> None:
        await create(asker, new("a"))
        revision = asker.cluster.server.revision
        results = await create(asker, new("b"), new("a"), timeout_ms=timeout_ms)
        assert [(each.error_code, each.error_message) for each in results] == [(7, None), (7, None)]
        assert await delete(asker, ToDelete(name="a"), timeout_ms=timeout_ms) == [("a", ZERO_TOPIC_ID, 7, None)]
        assert await enlarge(asker, Larger(name="a", count=2, assignments=None), timeout_ms=timeout_ms) == [
            ("a", 7, None)
        ]
        assert asker.cluster.server.revision == revision

    with_asker(scenario)


def test_validating_only_answers_as_if_and_creates_nothing() -> None:
    async def scenario(asker: Asker) -> None:
        (result,) = await create(asker, new("a", 3), validate_only=True)
        assert (result.error_code, result.num_partitions) == (0, 3)
        assert result.topic_id != ZERO_TOPIC_ID
        assert not asker.cluster.image.topics

    with_asker(scenario)


def test_of_two_identical_requests_at_once_one_creates_the_topic() -> None:
    async def scenario(asker: Asker) -> None:
        results = await asyncio.gather(create(asker, new("a")), create(asker, new("a")))
        assert sorted(each[0].error_code for each in results) == [0, 36]

    with_asker(scenario)


# --- DeleteTopics


def test_topics_are_deleted_by_name_and_by_id_and_each_has_its_own_answer() -> None:
    async def scenario(asker: Asker) -> None:
        ids = {each.name: each.topic_id for each in await create(asker, new("a"), new("b"), new("c"), new("kept"))}
        results = await delete(
            asker,
            ToDelete(name="a"),
            ToDelete(topic_id=ids["b"]),
            ToDelete(name="nope"),
            ToDelete(topic_id=b"2" * 16),
            ToDelete(name="kept"),
            ToDelete(name="kept"),
            ToDelete(topic_id=b"3" * 16),
            ToDelete(topic_id=b"3" * 16),
            ToDelete(name=None),
            ToDelete(name="c", topic_id=ids["c"]),
        )
        expected = [
            ("a", ids["a"], 0, None),
            ("b", ids["b"], 0, None),
            ("nope", ZERO_TOPIC_ID, 3, "This server does not host this topic-partition."),
            (None, b"2" * 16, 100, "This server does not host this topic ID."),
            ("kept", ZERO_TOPIC_ID, 42, "Duplicate topic name."),
            (None, b"3" * 16, 42, "Duplicate topic id."),
            (None, ZERO_TOPIC_ID, 42, "Neither topic name nor id were specified."),
            ("c", ids["c"], 42, "You may not specify both topic name and topic id."),
        ]
        assert sorted(results, key=repr) == sorted(expected, key=repr)
        assert sorted(asker.cluster.image.topics) == ["c", "kept"]

    with_asker(scenario)


def test_a_topic_named_by_its_id_and_by_its_name_is_not_deleted() -> None:
    async def scenario(asker: Asker) -> None:
        (created,) = await create(asker, new("a"))
        results = await delete(asker, ToDelete(topic_id=created.topic_id), ToDelete(name="a"))
        message = "The provided topic name maps to an ID that was already supplied."
        assert results == [("a", created.topic_id, 42, message)]
        assert "a" in asker.cluster.image.topics

    with_asker(scenario)


@pytest.mark.parametrize("version", range(1, 6))
def test_older_versions_delete_by_name(version: int) -> None:
    async def scenario(asker: Asker) -> None:
        await create(asker, new("a"), new("b"))
        request = DeleteTopicsRequest(topic_names=["a", "nope", "b", "b"], timeout_ms=1_000)
        results = (await asker.ask(delete_topics, version, request)).responses
        codes = {each.name: each.error_code for each in results}
        assert codes == {"a": 0, "nope": 3, "b": 42}
        assert list(asker.cluster.image.topics) == ["b"]

    with_asker(scenario)


@pytest.mark.parametrize(("version", "code"), [(2, 42), (3, 73), (5, 73)])
def test_a_broker_that_does_not_delete_topics_says_so(version: int, code: int) -> None:
    async def scenario(asker: Asker) -> None:
        await create(asker, new("a"))
        request = DeleteTopicsRequest(topic_names=["a"], timeout_ms=1_000)
        (result,) = (await asker.ask(delete_topics, version, request)).responses
        assert result.error_code == code
        assert "a" in asker.cluster.image.topics

    with_asker(scenario, static={"delete.topic.enable": "false"})


# --- CreatePartitions

REFUSED_ENLARGEMENTS = [
    (Larger(name="a", count=3, assignments=None), 37, "Topic already has 3 partition(s)."),
    (
        Larger(name="a", count=2, assignments=None),
        37,
        "The topic a currently has 3 partition(s); 2 would not be an increase.",
    ),
    (
        Larger(name="a", count=-1, assignments=None),
        37,
        "The topic a currently has 3 partition(s); -1 would not be an increase.",
    ),
    (Larger(name="nope", count=3, assignments=None), 3, None),
    (Larger(name="", count=3, assignments=None), 3, None),
    (
        Larger(name="a", count=4, assignments=[]),
        39,
        "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
    ),
    (Larger(name="a", count=4, assignments=[NewReplicas(broker_ids=[])]), 39, f"{MANUAL} an empty replica list."),
    (
        Larger(name="a", count=4, assignments=[NewReplicas(broker_ids=[9])]),
        39,
        f"{MANUAL} broker 9, but no such broker is registered.",
    ),
    (
        Larger(name="a", count=4, assignments=[NewReplicas(broker_ids=[1, 1])]),
        39,
        f"{MANUAL} the broker 1 more than once.",
    ),
    (Larger(name="a", count=20_000, assignments=None), 44, TOO_MANY),  # Kafka answers -1 without a word
]


@pytest.mark.parametrize(("wanted", "code", "message"), REFUSED_ENLARGEMENTS)
def test_an_enlargement_is_refused_as_kafka_refuses_it(wanted: Larger, code: int, message: str | None) -> None:
    async def scenario(asker: Asker) -> None:
        await create(asker, new("a", 3))
        assert await enlarge(asker, wanted) == [(wanted.name, code, message)]
        assert len(asker.cluster.image.topics["a"].partitions) == 3

    with_asker(scenario)


def test_partitions_are_added_placed_or_where_they_are_put() -> None:
    async def scenario(asker: Asker) -> None:
        await create(asker, new("a"), new("b"))
        replicas = [NewReplicas(broker_ids=[1]), NewReplicas(broker_ids=[1])]
        results = await enlarge(
            asker, Larger(name="a", count=2, assignments=None), Larger(name="b", count=3, assignments=replicas)
        )
        assert results == [("a", 0, None), ("b", 0, None)]
        assert [len(asker.cluster.image.topics[name].partitions) for name in "ab"] == [2, 3]

    with_asker(scenario)


def test_a_topic_named_twice_is_not_enlarged_and_validating_changes_nothing() -> None:
    async def scenario(asker: Asker) -> None:
        await create(asker, new("a"), new("b"))
        twice = [Larger(name="a", count=count, assignments=None) for count in (2, 3)]
        results = await enlarge(asker, *twice, Larger(name="b", count=2, assignments=None), validate_only=True)
        assert results == [("a", 42, "Duplicate topic name."), ("b", 0, None)]
        assert [len(topic.partitions) for topic in asker.cluster.image.topics.values()] == [1, 1]

    with_asker(scenario)


# --- authorization


class Only:
    """Allows what is listed, on topics; nothing on the cluster."""

    generation = 0

    def __init__(self, *allowed: tuple[Operation, str]) -> None:
        self._allowed = allowed

    def allows(self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        return kind is ResourceType.TOPIC and (operation, name) in self._allowed

    def allows_somewhere(self, principal: Principal, host: str, operation: Operation, kind: ResourceType) -> bool:
        return False


def test_whoever_may_not_is_told_so_and_nothing_more() -> None:
    async def scenario(cluster: SmallCluster) -> None:
        await cluster.metadata_writer.create_topic(NewTopic("seen", 1, 1))
        await cluster.metadata_writer.create_topic(NewTopic("hidden", 1, 1))
        hidden_id = cluster.image.topics["hidden"].topic_id
        asker = Asker(cluster, authorizer=Only((Operation.CREATE, "mine"), (Operation.DESCRIBE, "seen")))
        results = await create(asker, new("mine"), new("other"))
        assert [(each.name, each.error_code, each.error_message) for each in results] == [
            ("mine", 0, None),
            ("other", 29, "Authorization failed."),
        ]
        assert (results[0].topic_config_error_code, results[0].configs) == (29, [])
        deletions = await delete(
            asker, ToDelete(name="seen"), ToDelete(name="hidden"), ToDelete(name="nope"), ToDelete(topic_id=hidden_id)
        )
        assert {(name, topic_id, code) for name, topic_id, code, _ in deletions} == {
            ("seen", ZERO_TOPIC_ID, 29),
            ("hidden", ZERO_TOPIC_ID, 29),
            ("nope", ZERO_TOPIC_ID, 29),
            (None, hidden_id, 29),
        }
        assert await enlarge(asker, Larger(name="seen", count=2, assignments=None)) == [("seen", 29, None)]
        assert set(cluster.image.topics) == {"seen", "hidden", "mine"}

    with_cluster(scenario)
