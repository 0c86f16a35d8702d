"""Metadata and DescribeTopicPartitions, as Apache Kafka 4.3.1 answers the same requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headpond.broker.handlers.topics import describe_topic_partitions, metadata
from headpond.cluster import keys
from headpond.cluster.rows import BrokerRow, Endpoint, PartitionState, encode
from headpond.cluster.topics import NewTopic
from headpond.model import ZERO_TOPIC_ID
from headpond.ports import Put
from headpond.protocol.schema.describe_topic_partitions import DescribeTopicPartitionsRequest
from headpond.protocol.schema.metadata import MetadataRequest
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import StoreServer
from unit.broker.asking import Asker
from unit.broker.test_topic_handlers import with_asker
from unit.cluster.small_cluster import SmallCluster, simulate

NOT_ASKED = -2_147_483_648
TOPIC_OPERATIONS, CLUSTER_OPERATIONS = 3576, 8096  # what a Kafka without ACLs answers


async def ask(asker: Asker, version: int, *names: str | bytes | None, everything: bool = False, **more: Any) -> Any:
    topics = [
        MetadataRequest.MetadataRequestTopic(name=None, topic_id=each)
        if isinstance(each, bytes)
        else MetadataRequest.MetadataRequestTopic(name=each)
        for each in names
    ]
    if version >= 4:
        more.setdefault("allow_auto_topic_creation", False)
    asked = None if everything and version > 0 else topics
    return await asker.ask(metadata, version, MetadataRequest(topics=asked, **more))


def shown(response: Any) -> list[tuple[int, str | None]]:
    return [(topic.error_code, topic.name) for topic in response.topics]


async def make(asker: Asker, *names: str, partitions: int = 1) -> list[bytes]:
    return [
        (await asker.cluster.metadata_writer.create_topic(NewTopic(name, partitions, 1))).topic_id for name in names
    ]


async def settled(asker: Asker) -> None:
    await asyncio.gather(*(task for task in asker.cluster.tasks.tasks if task.get_name().startswith("create topic")))


@pytest.mark.parametrize("version", range(14))
def test_every_version_names_broker_cluster_controller_and_topic(version: int) -> None:
    async def scenario(asker: Asker) -> None:
        (topic_id,) = await make(asker, "a", partitions=2)
        response = await ask(asker, version, "a")
        (broker,) = response.brokers
        assert (broker.node_id, broker.host, broker.port, broker.rack) == (1, "broker1.example", 9092, None)
        assert response.cluster_id == (asker.cluster.image.cluster_id if version >= 2 else None)
        assert response.controller_id == (1 if version >= 1 else -1)
        (topic,) = response.topics
        assert (topic.error_code, topic.name, topic.is_internal) == (0, "a", False)
        assert topic.topic_id == (topic_id if version >= 10 else ZERO_TOPIC_ID)
        assert topic.topic_authorized_operations == response.cluster_authorized_operations == NOT_ASKED
        epoch = 0 if version >= 7 else -1
        assert [
            (
                p.error_code,
                p.partition_index,
                p.leader_id,
                p.leader_epoch,
                p.replica_nodes,
                p.isr_nodes,
                p.offline_replicas,
            )
            for p in topic.partitions
        ] == [(0, 0, 1, epoch, [1], [1], []), (0, 1, 1, epoch, [1], [1], [])]

    with_asker(scenario)


def test_all_topics_are_asked_for_with_an_empty_list_in_v0_and_with_null_after_it() -> None:
    async def scenario(asker: Asker) -> None:
        await make(asker, "b", "a")
        for version in (0, 1, 13):
            assert shown(await ask(asker, version, everything=True)) == [(0, "a"), (0, "b")]
        assert shown(await ask(asker, 1)) == []
        assert shown(await ask(asker, 13)) == []

    with_asker(scenario)


def test_existing_topics_come_first_each_once() -> None:
    async def scenario(asker: Asker) -> None:
        await make(asker, "a", "b")
        assert shown(await ask(asker, 12, "b", "none", "a", "b")) == [(0, "b"), (0, "a"), (3, "none")]

    with_asker(scenario)


def test_what_does_not_exist_is_unknown_and_what_can_not_exist_is_invalid() -> None:
    async def scenario(asker: Asker) -> None:
        response = await ask(asker, 12, "none", "a b", "", "__consumer_offsets", "__cluster_metadata")
        assert [(topic.error_code, topic.is_internal) for topic in response.topics] == [
            (3, False),
            (17, False),
            (17, False),
            (3, True),
            (3, False),
        ]

    with_asker(scenario)


def test_by_id_names_are_not_looked_at_and_unknown_ids_come_first() -> None:
    async def scenario(asker: Asker) -> None:
        a, b = await make(asker, "a", "b")
        assert shown(await ask(asker, 12, a)) == [(0, "a")]
        response = await ask(asker, 12, "b", a, b"9" * 16, include_topic_authorized_operations=True)
        assert shown(response) == [(100, None), (0, "a")]
        assert [topic.topic_id for topic in response.topics] == [b"9" * 16, a]
        assert [topic.topic_authorized_operations for topic in response.topics] == [NOT_ASKED, TOPIC_OPERATIONS]
        named_wrongly = MetadataRequest.MetadataRequestTopic(name="b", topic_id=a)
        request = MetadataRequest(topics=[named_wrongly], allow_auto_topic_creation=False)
        assert shown(await asker.ask(metadata, 12, request)) == [(0, "a")]
        assert b not in (topic.topic_id for topic in response.topics)

    with_asker(scenario)


@pytest.mark.parametrize(("version", "error"), [(10, 42), (11, 42), (12, -1), (13, -1)])
def test_neither_a_name_nor_an_id_fails_the_whole_request(version: int, error: int) -> None:
    async def scenario(asker: Asker) -> None:
        await make(asker, "a")
        response = await ask(asker, version, None, "a")
        assert shown(response) == [(error, ""), (error, "a")]
        assert (response.brokers, response.cluster_id, response.controller_id) == ([], None, -1)
        assert response.error_code == (error if version >= 13 else 0)

    with_asker(scenario)


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_before_they_were_supported(version: int) -> None:
    async def scenario(asker: Asker) -> None:
        (topic_id,) = await make(asker, "a")
        topic = MetadataRequest.MetadataRequestTopic(name="a", topic_id=topic_id)
        response = await asker.ask(metadata, version, MetadataRequest(topics=[topic]))
        assert [(each.error_code, each.name, each.topic_id) for each in response.topics] == [(42, "a", topic_id)]

    with_asker(scenario)


def test_authorized_operations_are_told_to_whom_asks() -> None:
    async def scenario(asker: Asker) -> None:
        await make(asker, "a")
        response = await ask(
            asker, 8, "a", "none", include_topic_authorized_operations=True, include_cluster_authorized_operations=True
        )
        assert response.cluster_authorized_operations == CLUSTER_OPERATIONS
        assert [topic.topic_authorized_operations for topic in response.topics] == [TOPIC_OPERATIONS] * 2

    with_asker(scenario)


@pytest.mark.parametrize("version", [0, 3, 4, 13])
def test_a_new_name_is_unknown_first_and_there_the_next_time(version: int) -> None:
    async def scenario(asker: Asker) -> None:
        more = {"allow_auto_topic_creation": True} if version >= 4 else {}
        assert shown(await ask(asker, version, "new", "bad name", **more)) == [(3, "new"), (17, "bad name")]
        await settled(asker)
        assert shown(await ask(asker, version, "new", **more)) == [(0, "new")]

    with_asker(scenario)


@pytest.mark.parametrize(("static", "allowed"), [({}, False), ({"auto.create.topics.enable": "false"}, True)])
def test_no_topic_is_created_unless_request_and_broker_agree(static: dict[str, str], allowed: bool) -> None:
    async def scenario(asker: Asker) -> None:
        assert shown(await ask(asker, 12, "new", allow_auto_topic_creation=allowed)) == [(3, "new")]
        await settled(asker)
        assert not asker.cluster.image.topics

    with_asker(scenario, static=static)


def test_internal_topics_are_not_created_by_asking_for_them() -> None:
    async def scenario(asker: Asker) -> None:
        names = ("__consumer_offsets", "__transaction_state", "__cluster_metadata")
        response = await ask(asker, 12, *names, allow_auto_topic_creation=True)
        assert [code for code, _ in shown(response)] == [3, 3, 3]
        await settled(asker)
        assert not asker.cluster.image.topics

    with_asker(scenario)


def three_brokers(server: StoreServer) -> None:
    """Broker 1 is up; 2 has another listener only; 3 is fenced."""
    plain, other = Endpoint("PLAINTEXT", "PLAINTEXT", "three", 3), Endpoint("OTHER", "PLAINTEXT", "two", 2)
    server.transact(
        [],
        [
            Put(keys.broker(2), encode(BrokerRow((other,), "i2", rack="r2"))),
            Put(keys.broker(3), encode(BrokerRow((plain,), "i3", fenced=True))),
        ],
    )


@pytest.mark.parametrize(
    ("version", "errors"), [(0, [9, 5, 5]), (1, [0, 5, 5]), (5, [0, 5, 5]), (6, [0, 72, 5]), (13, [0, 72, 5])]
)
def test_leaders_and_replicas_that_the_asker_can_not_reach(version: int, errors: list[int]) -> None:
    async def scenario(server: StoreServer, clock: ManualClock) -> None:
        cluster = await SmallCluster(server, clock).start()
        three_brokers(server)
        topic_id = (await cluster.metadata_writer.create_topic(NewTopic("a", 3, 1))).topic_id
        leaders = (1, 2, 9)  # reachable; only through another listener; nobody
        server.transact(
            [],
            [
                Put(keys.partition(topic_id, i), encode(PartitionState(leader, 4, 4, (1, 2, 3), (1, 2))))
                for i, leader in enumerate(leaders)
            ],
        )
        await cluster.follower.wait_for(server.revision, timeout_s=5)
        response = await ask(Asker(cluster), version, "a")
        assert [broker.node_id for broker in response.brokers] == [1]
        partitions = response.topics[0].partitions
        assert [p.error_code for p in partitions] == errors
        assert [p.leader_id for p in partitions] == [1, -1, -1]
        if version == 0:
            assert (partitions[0].replica_nodes, partitions[0].isr_nodes) == ([1], [1])
        else:
            assert (partitions[0].replica_nodes, partitions[0].isr_nodes) == ([1, 2, 3], [1, 2])
        assert partitions[0].offline_replicas == ([2, 3] if version >= 5 else [])

    simulate(scenario)


# --- DescribeTopicPartitions


async def describe(asker: Asker, *names: str, limit: int = 2_000, cursor: tuple[str, int] | None = None) -> Any:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else DescribeTopicPartitionsRequest.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return await asker.ask(describe_topic_partitions, 0, request)


def described(response: Any) -> list[tuple[int, str, list[int]]]:
    return [(t.error_code, t.name, [p.partition_index for p in t.partitions]) for t in response.topics]


def next_cursor(response: Any) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


A, B = (0, "a", [0, 1, 2, 3]), (0, "b", [0])


@pytest.mark.parametrize(
    ("names", "limit", "cursor", "topics", "following"),
    [
        (("b", "a", "none", "a b", "a"), 2_000, None, [A, (17, "a b", []), B, (3, "none", [])], None),
        (("a", "b"), 2, None, [(0, "a", [0, 1])], ("a", 2)),
        (("a", "b"), 4, None, [A], ("b", 0)),
        (("a", "b"), 0, None, [(0, "a", [0])], ("a", 1)),
        (("a", "b"), -1, None, [(0, "a", [0])], ("a", 1)),
        (("a", "b"), 2_000, ("a", 2), [(0, "a", [2, 3]), B], None),
        (("a", "b"), 2_000, ("b", 0), [B], None),
        (("a",), 2_000, ("b", 0), [(42, "a", [])], None),
        (("a",), 2_000, ("a", -1), [(42, "a", [])], None),
        (("a", "b"), 2, ("a", 99), [(0, "a", []), B], None),
        (("none", "z"), 1, None, [(3, "none", []), (3, "z", [])], None),
        (("a", "none", "z"), 4, None, [A], ("none", 0)),
        ((), 3, None, [(0, "a", [0, 1, 2])], ("a", 3)),
        ((), 2_000, ("aa", 0), [B], None),
        ((), 2_000, None, [A, B], None),
    ],
)
def test_the_answer_is_cut_at_the_limit_and_goes_on_at_the_cursor(
    names: tuple[str, ...],
    limit: int,
    cursor: tuple[str, int] | None,
    topics: list[tuple[int, str, list[int]]],
    following: tuple[str, int] | None,
) -> None:
    async def scenario(asker: Asker) -> None:
        await make(asker, "a", partitions=4)
        await make(asker, "b")
        response = await describe(asker, *names, limit=limit, cursor=cursor)
        assert described(response) == topics
        assert next_cursor(response) == following

    with_asker(scenario)


def test_the_broker_s_own_limit_holds_too_and_cursors_lead_through_everything() -> None:
    async def scenario(asker: Asker) -> None:
        await make(asker, "a", "b", "c", partitions=5)
        seen: list[tuple[str, int]] = []
        cursor: tuple[str, int] | None = None
        while True:
            response = await describe(asker, cursor=cursor)
            page = [(name, index) for _, name, indexes in described(response) for index in indexes]
            assert len(page) <= 3
            seen += page
            cursor = next_cursor(response)
            if cursor is None:
                break
        assert seen == [(name, index) for name in "abc" for index in range(5)]

    with_asker(scenario, static={"max.request.partition.size.limit": "3"})


def test_a_described_partition_has_its_leader_replicas_and_operations() -> None:
    async def scenario(asker: Asker) -> None:
        (topic_id,) = await make(asker, "a")
        (topic,) = (await describe(asker, "a")).topics
        assert (topic.topic_id, topic.is_internal, topic.topic_authorized_operations) == (
            topic_id,
            False,
            TOPIC_OPERATIONS,
        )
        (p,) = topic.partitions
        assert (p.error_code, p.leader_id, p.leader_epoch, p.replica_nodes, p.isr_nodes) == (0, 1, 0, [1], [1])
        assert (p.eligible_leader_replicas, p.last_known_elr, p.offline_replicas) == ([], [], [])

    with_asker(scenario)
