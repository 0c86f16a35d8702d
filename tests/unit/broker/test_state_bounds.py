"""A few bytes may ask for everything that a broker holds: the loop turns while it is told, and what is asked for again
and again is put together once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from headpond.broker.handlers.cluster import describe_log_dirs, elect_leaders
from headpond.broker.handlers.configs import describe_configs, list_config_resources
from headpond.broker.handlers.groups import describe_groups, list_groups, offset_fetch
from headpond.broker.handlers.topics import describe_topic_partitions, metadata
from headpond.broker.handlers.transactions import describe_producers
from headpond.broker.requests.pacing import A_LOOK, A_ROW, SLICE_COST
from headpond.cluster.image import TopicImage
from headpond.cluster.rows import PartitionState
from headpond.coordination.groups.machine import SLICE_GROUPS
from headpond.coordination.groups.offset_memory import CommittedOffset
from headpond.coordination.groups.offsets import SLICE_OFFSETS
from headpond.model import TopicId, TopicPartition
from headpond.protocol.schema.describe_configs import DescribeConfigsRequest
from headpond.protocol.schema.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from headpond.protocol.schema.describe_log_dirs import DescribeLogDirsRequest
from headpond.protocol.schema.describe_producers import DescribeProducersRequest
from headpond.protocol.schema.describe_topic_partitions import DescribeTopicPartitionsRequest
from headpond.protocol.schema.elect_leaders import ElectLeadersRequest
from headpond.protocol.schema.list_config_resources import ListConfigResourcesRequest
from headpond.protocol.schema.list_groups import ListGroupsRequest
from headpond.protocol.schema.metadata import MetadataRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from headpond.storage.producers.state import ProducerState
from unit.broker.coordinator_cases import GROUP, TOPIC, Coordinators, with_coordinators

BROKER, GROUP_SETTINGS = 4, 32


def counted(scenario: Callable[[Coordinators, list[None]], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    """``scenario`` is given the pauses that handlers make."""

    async def run(broker: Coordinators) -> None:
        pauses: list[None] = []
        slices = broker.broker.pacing.slices
        turn = slices.turn

        async def counting() -> None:
            pauses.append(None)
            await turn()

        monkeypatch.setattr(slices, "turn", counting)
        await scenario(broker, pauses)

    with_coordinators(run)


def slices_of(cost: int) -> int:
    """At least so many pauses."""
    return cost // SLICE_COST - 1


def with_topics(broker: Coordinators, topics: int, *, partitions: int) -> None:
    state = broker.cluster.image.topics[TOPIC].partitions[0]
    assert isinstance(state, PartitionState)
    for number in range(topics):
        name, topic_id = f"t{number}", TopicId(number.to_bytes(16, "big"))
        broker.cluster.image.topics[name] = TopicImage(name, topic_id, (state,) * partitions, 1)


def test_all_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Coordinators, pauses: list[None]) -> None:
        with_topics(broker, 1, partitions=20_000)
        answer = await broker.ask(metadata, 12, MetadataRequest(topics=None))
        assert max(len(topic.partitions) for topic in answer.topics) == 20_000
        assert len(pauses) >= slices_of(20_000 * A_ROW)

    counted(scenario, monkeypatch)


def test_topics_that_are_deleted_while_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Coordinators, pauses: list[None]) -> None:
        with_topics(broker, 2_000, partitions=1)
        slices = broker.broker.pacing.slices
        turn = slices.turn

        async def deleting() -> None:
            broker.cluster.image.topics.pop("t999", None)
            await turn()

        monkeypatch.setattr(slices, "turn", deleting)
        answer = await broker.ask(metadata, 12, MetadataRequest(topics=None))
        names = [topic.name for topic in answer.topics]
        assert names == sorted(names) and "t999" not in names and {"t0", "t998"} <= set(names)

    counted(scenario, monkeypatch)


def test_topics_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Coordinators, pauses: list[None]) -> None:
        with_topics(broker, 3_000, partitions=1)
        request = DescribeTopicPartitionsRequest(response_partition_limit=2_000)
        answer = await broker.ask(describe_topic_partitions, 0, request)
        names = [topic.name for topic in answer.topics]
        everything = sorted(broker.cluster.image.topics)
        assert names == everything[: len(names)]
        assert answer.next_cursor.topic_name == everything[len(names)]
        assert sum(len(topic.partitions) for topic in answer.topics) == 2_000
        assert len(pauses) >= slices_of(2_000 * A_ROW)

    counted(scenario, monkeypatch)


def test_all_resources_and_all_elections(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Coordinators, pauses: list[None]) -> None:
        with_topics(broker, 20_000, partitions=1)
        listed = await broker.ask(list_config_resources, 1, ListConfigResourcesRequest())
        assert len(listed.config_resources) > 20_000
        assert len(pauses) >= slices_of(20_000 * A_ROW)
        pauses.clear()
        elected = await broker.ask(elect_leaders, 2, ElectLeadersRequest(topic_partitions=None, timeout_ms=1_000))
        assert len(elected.replica_election_results) > 20_000
        assert len(pauses) >= slices_of(20_000 * A_LOOK)

    counted(scenario, monkeypatch)


def test_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Coordinators, pauses: list[None]) -> None:
        machines = broker.broker.groups.runtime.machines()
        for number in range(10_000):
            machines[number % 2].classic.simple(f"g{number}")
        answer = await broker.ask(list_groups, 5, ListGroupsRequest())
        assert len({group.group_id for group in answer.groups}) == 10_000
        assert len(pauses) >= 10_000 // SLICE_GROUPS

    counted(scenario, monkeypatch)


@pytest.mark.parametrize("is_named", [False, True])
def test_all_offsets_of_a_group(is_named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Coordinators, pauses: list[None]) -> None:
        machine = broker.broker.groups.read(GROUP, lambda machine: machine)
        machine.classic.simple(GROUP)
        for partition in range(10_000):
            machine.offsets._committed.put(
                GROUP, TOPIC, partition, CommittedOffset(partition, 0, "", 0, -1, bytes(16), partition)
            )
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=None)
        if is_named:
            topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(range(10_000)))
            asked.topics = [topic]
        answer = await broker.ask(offset_fetch, 9, OffsetFetchRequest(groups=[asked]))
        [group] = answer.groups
        assert [row.committed_offset for row in group.topics[0].partitions] == list(range(10_000))
        assert len(pauses) >= 10_000 // SLICE_OFFSETS

    counted(scenario, monkeypatch)


def test_all_logs_and_all_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Coordinators, pauses: list[None]) -> None:
        async def space() -> tuple[int, int]:
            return 1, 1

        states = [ProducerState(number, 0, [], 0) for number in range(5_000)]
        producers = SimpleNamespace(states=lambda: states)
        replicas = [
            SimpleNamespace(
                is_leader=True,
                partition=SimpleNamespace(log=SimpleNamespace(tp=TopicPartition(TOPIC, number), size_bytes=number)),
                log=SimpleNamespace(producers=producers),
            )
            for number in range(5_000)
        ]
        broker.broker.logs = SimpleNamespace(space=space, data_dir="d")  # type: ignore[assignment]
        broker.broker.replicas = replicas  # type: ignore[assignment]
        folders = await broker.ask(describe_log_dirs, 4, DescribeLogDirsRequest(topics=None))
        assert len(folders.results[0].topics[0].partitions) == 5_000
        assert len(pauses) >= slices_of(5_000 * A_ROW)

        pauses.clear()
        broker.broker.replicas = SimpleNamespace(partition=lambda tp: replicas[0])  # type: ignore[assignment]
        topic = DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0] * 20)
        told = await broker.ask(describe_producers, 0, DescribeProducersRequest(topics=[topic]))
        assert [len(row.active_producers) for row in told.topics[0].partitions] == [5_000] * 20
        assert slices_of(5_000 * A_ROW) <= len(pauses) < slices_of(2 * 5_000 * A_ROW)  # not twenty times as many

    counted(scenario, monkeypatch)


def test_settings_of_a_broker_asked_for_a_thousand_times_are_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Coordinators, pauses: list[None]) -> None:
        resource = DescribeConfigsRequest.DescribeConfigsResource(BROKER, "1", None)
        once = await broker.ask(describe_configs, 4, DescribeConfigsRequest(resources=[resource]))
        pauses.clear()
        answer = await broker.ask(describe_configs, 4, DescribeConfigsRequest(resources=[resource] * 1_000))
        assert answer.results == once.results * 1_000
        rows = 1_000 + len(once.results[0].configs)
        assert slices_of(rows * A_ROW) <= len(pauses) <= slices_of(rows * A_ROW) + 2

    counted(scenario, monkeypatch)


def test_settings_that_resources_have_in_common_are_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Coordinators, pauses: list[None]) -> None:
        groups = [DescribeConfigsRequest.DescribeConfigsResource(GROUP_SETTINGS, f"g{n}", None) for n in range(2_000)]
        answer = await broker.ask(describe_configs, 4, DescribeConfigsRequest(resources=groups))
        assert {result.resource_name for result in answer.results} == {group.resource_name for group in groups}
        assert all(result.configs == answer.results[0].configs for result in answer.results)
        assert len(pauses) <= slices_of(2_100 * A_ROW) + 2

    counted(scenario, monkeypatch)


def test_keys_of_settings_that_nobody_knows_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Coordinators, pauses: list[None]) -> None:
        keys = [f"k{number}" for number in range(50_000)] + ["node.id"]
        resource = DescribeConfigsRequest.DescribeConfigsResource(BROKER, "1", keys)
        answer = await broker.ask(describe_configs, 4, DescribeConfigsRequest(resources=[resource]))
        assert [entry.name for entry in answer.results[0].configs] == ["node.id"]
        assert len(pauses) >= slices_of(50_000 * A_LOOK)

    counted(scenario, monkeypatch)


def test_a_group_that_is_repeated_is_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Coordinators, pauses: list[None]) -> None:
        described = 0
        member = DescribeGroupsResponse.DescribedGroupMember(member_id="m", client_id="c", client_host="h")
        row = DescribeGroupsResponse.DescribedGroup(group_id=GROUP, members=[member] * 300)

        def describe(group_id: str, *, version: int) -> Any:
            nonlocal described
            described += 1
            return row

        machine = broker.broker.groups.read(GROUP, lambda machine: machine)
        monkeypatch.setattr(machine.classic, "describe", describe)
        answer = await broker.ask(describe_groups, 5, DescribeGroupsRequest(groups=[GROUP] * 100))
        assert answer.groups == [row] * 100
        assert described == 1

    counted(scenario, monkeypatch)
