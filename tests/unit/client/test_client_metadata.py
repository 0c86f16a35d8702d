"""What the internal client knows of a cluster, how it finds leaders, and where people may say a cluster is."""

from __future__ import annotations

import pytest

from headpond.client import Address, Client, ClientError, parse_bootstrap
from headpond.client.admin import LATEST, Admin
from headpond.client.metadata import Cluster
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.metadata import MetadataResponse
from unit.client.memory_cluster import DROP_AFTER, MemoryCluster

TP = TopicPartition("t", 0)


def heard(leader: int, epoch: int, *, topic_id: bytes = b"1" * 16, error: int = 0) -> MetadataResponse:
    partition = MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    topic = MetadataResponse.MetadataResponseTopic(
        name="t", topic_id=topic_id, partitions=[partition], error_code=error
    )
    brokers = [MetadataResponse.MetadataResponseBroker(node_id=node, host="b", port=node) for node in (1, 2)]
    return MetadataResponse(brokers=brokers, topics=[topic])


def leader_after(*answers: MetadataResponse) -> int | None:
    cluster = Cluster()
    for answer in answers:
        cluster.learn(answer)
    found = cluster.leader(TP)
    return None if found is None else found.leader


def test_an_older_leader_epoch_is_not_believed_any_more() -> None:
    assert leader_after(heard(1, 4), heard(2, 5), heard(1, 4)) == 2


def test_a_topic_made_anew_begins_its_epochs_anew() -> None:
    assert leader_after(heard(1, 4), heard(2, 0, topic_id=b"2" * 16)) == 2


def test_no_leader_an_unknown_broker_and_a_deleted_topic_are_nobody() -> None:
    assert leader_after(heard(-1, 4)) is None
    assert leader_after(heard(3, 4)) is None
    assert leader_after(heard(1, 4), heard(1, 4, error=3)) is None


def test_one_partitions_failure_does_not_fail_its_neighbours() -> None:
    cluster = MemoryCluster(nodes=2)
    logs = cluster.add_topic("t", 3)
    logs[1].leader = -1
    wanted = {TopicPartition("t", index): LATEST for index in range(4)}

    async def scenario(client: Client) -> list[object]:
        results = await Admin(client).list_offsets_or_errors(wanted)
        assert list(results) == list(wanted)
        return [result.code if isinstance(result, ClientError) else result.offset for result in results.values()]

    assert cluster.run(scenario) == [0, ErrorCode.LEADER_NOT_AVAILABLE, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_offsets_are_found_though_the_known_leader_is_not_it_any_more() -> None:
    cluster = MemoryCluster(nodes=2)
    (log,) = cluster.add_topic("t")

    async def scenario(client: Client) -> int:
        await client.metadata(["t"])
        cluster.move_leader(log, 2)
        return (await Admin(client).list_offsets({TP: LATEST}))[TP].offset

    assert cluster.run(scenario) == 0


def test_a_question_is_repeated_after_a_lost_connection_but_a_change_is_not() -> None:
    cluster = MemoryCluster()
    left = [DROP_AFTER]

    async def scenario(client: Client) -> None:
        cluster.faults = lambda node, request: left.pop() if left else None
        await client.metadata([])
        left.append(DROP_AFTER)
        with pytest.raises(ClientError) as caught:
            await Admin(client).create_topic("new", 1)
        assert caught.value.is_outcome_unknown
        assert len(cluster.asked("CreateTopics")) == 1

    cluster.run(scenario)
    assert "new" in cluster.topics


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("127.0.0.1:9093", [("127.0.0.1", 9093)]),
        ("a, b:1 ,a", [("a", 9092), ("b", 1)]),
        ("[::1]:9095,[::1]", [("::1", 9095), ("::1", 9092)]),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == addresses


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no broker is named"),
        (":9092", "names no host"),
        ("a:", "nothing is no port"),
        ("a:x", "x is no port"),
        ("a:70000", "70000 is no port"),
        ("::1", r"write an IPv6 address as \[::1\]:9092"),
        ("[::1", r"write \[HOST\]:PORT"),
    ],
)
def test_what_is_no_address_is_refused_with_what_to_write(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parse_bootstrap(text)


def test_an_address_is_written_as_it_is_read() -> None:
    assert [str(one) for one in (Address("a", 1), Address("::1", 2))] == ["a:1", "[::1]:2"]
