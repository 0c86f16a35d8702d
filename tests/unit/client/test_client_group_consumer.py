"""A member of the consumer protocol (KIP-848): heartbeats, acknowledgements, and what it may trust without answers."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.client import Client, ClientError
from headpond.client.group.consumer import ConsumerMember
from headpond.client.group.member import MemberSettings
from headpond.client.group_admin import GroupOffset
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from unit.client.group_cluster import INTERVAL_S, GroupCluster, orders
from unit.client.memory_cluster import DROP_AFTER, DROP_BEFORE, SWALLOW, Fault

E = ErrorCode
SESSION_S = 10.0
SETTINGS = MemberSettings(session_timeout_ms=int(SESSION_S * 1_000), rebalance_timeout_ms=60_000)


def member(client: Client, cluster: GroupCluster, **options: Any) -> ConsumerMember:
    return ConsumerMember(client, "billing", ["orders"], **cluster.callbacks(settings=SETTINGS) | options)


async def until_owned(one: ConsumerMember, *partitions: int) -> None:
    while one.assignment != orders(*partitions):
        await one._client.clock.sleep(0.01)


def test_a_member_joins_with_an_id_of_its_own_and_acknowledges_what_it_is_given() -> None:
    cluster = GroupCluster()
    cluster.assign(0, 1)

    async def scenario(client: Client) -> str:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            await client.clock.sleep(1.5 * INTERVAL_S)
            assert one.epoch == 1
            return one.member_id

    member_id = cluster.run(scenario)
    story = ["epoch 0 owns ", "assigned 0,1", "epoch 1 owns 0,1", "epoch 1", "revoked 0,1", "epoch -1"]
    assert cluster.story == story
    first, second, third, _ = cluster.asked("ConsumerGroupHeartbeat")
    assert (first.subscribed_topic_names, first.rebalance_timeout_ms) == (["orders"], 60_000)
    assert len(member_id) == 22 and {one.member_id for one in (first, second, third)} == {member_id}
    assert (second.subscribed_topic_names, second.rebalance_timeout_ms) == (None, -1), "it was told already"


def test_a_partition_is_revoked_before_that_is_acknowledged_and_heartbeats_go_on_meanwhile() -> None:
    cluster = GroupCluster()
    cluster.assign(0, 1)
    seen: list[Any] = []

    async def scenario(client: Client) -> None:
        async def commit(partitions: tuple[TopicPartition, ...]) -> None:
            if partitions == orders(1):
                await client.clock.sleep(2 * SESSION_S)
            seen.append((partitions, one.assignment, await one.commit({partitions[0]: GroupOffset(5)})))
            cluster.story.append("revoked")

        one = member(client, cluster, on_revoked=commit)
        async with one:
            await until_owned(one, 0, 1)
            cluster.assign(0)
            await until_owned(one, 0)
            await client.clock.sleep(0.1)

    cluster.run(scenario)
    assert seen[0] == (orders(1), orders(0, 1), {orders(1)[0]: E.NONE})
    at = cluster.story.index("OffsetCommit")
    assert cluster.story[at - 6 : at + 3] == ["epoch 2"] * 6 + ["OffsetCommit", "revoked", "epoch 2 owns 0"]
    (request, _) = cluster.asked("OffsetCommit")
    assert request.generation_id_or_member_epoch == 2


def test_a_target_that_changes_while_a_callback_runs_is_reached_afterwards() -> None:
    cluster = GroupCluster()
    cluster.assign(0)

    async def scenario(client: Client) -> None:
        async def slow(partitions: tuple[TopicPartition, ...]) -> None:
            await client.clock.sleep(2 * INTERVAL_S)
            cluster.noted("assigned")(partitions)

        async with member(client, cluster, on_assigned=slow) as one:
            await until_owned(one, 0)
            cluster.assign(1)
            await until_owned(one, 1)
            await client.clock.sleep(3 * INTERVAL_S)

    cluster.run(scenario)
    calls = [one for one in cluster.story if not one.startswith("epoch")]
    assert calls == ["assigned 0", "revoked 0", "assigned 1", "revoked 1"]


def test_after_an_answer_that_was_lost_everything_is_said_again_under_the_same_id() -> None:
    cluster = GroupCluster()
    cluster.targets.extend([None])
    to_lose = [1, 3]

    def lose(node: int, request: Any) -> Fault:
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            if len(cluster.asked("ConsumerGroupHeartbeat")) in to_lose:
                return DROP_AFTER
            if not cluster.targets:
                cluster.assign(0, 1)
        return None

    cluster.faults = lose

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            await client.clock.sleep(INTERVAL_S)

    cluster.run(scenario)
    first, again, _, full = cluster.asked("ConsumerGroupHeartbeat")[:4]
    assert (first.member_epoch, again.member_epoch) == (0, 0) and first.member_id == again.member_id
    assert full.subscribed_topic_names == ["orders"] and full.rebalance_timeout_ms == 60_000
    assert [topic.partitions for topic in full.topic_partitions] == [[0, 1]]


@pytest.mark.parametrize("code", [E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND])
def test_a_fenced_member_has_lost_everything_and_joins_again_with_epoch_0(code: ErrorCode) -> None:
    cluster = GroupCluster()
    cluster.assign(0, 1)

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            await client.clock.sleep(0.1)
            cluster.codes["ConsumerGroupHeartbeat"].append(code)
            cluster.assign(1)
            await until_owned(one, 1)

    cluster.run(scenario)
    at = cluster.story.index("lost 0,1")
    assert cluster.story[at - 1 : at + 3] == ["epoch 1", "lost 0,1", "epoch 0 owns ", "assigned 1"]
    assert len({request.member_id for request in cluster.asked("ConsumerGroupHeartbeat")}) == 1


@pytest.mark.parametrize("code", [E.UNRELEASED_INSTANCE_ID, E.FENCED_INSTANCE_ID, E.GROUP_MAX_SIZE_REACHED])
def test_what_waiting_does_not_better_ends_a_member(code: ErrorCode) -> None:
    cluster = GroupCluster()
    cluster.codes["ConsumerGroupHeartbeat"].append(code)

    async def scenario(client: Client) -> None:
        async with member(client, cluster, instance_id="desk") as one:
            await client.clock.sleep(20)
            assert isinstance(one.failure, ClientError) and one.failure.code is code
            with pytest.raises(ClientError, match=code.name):
                await one.committed(orders(0))

    cluster.run(scenario)
    assert cluster.story == ["epoch 0 owns ", "epoch -2"]


def test_a_static_member_leaves_for_now() -> None:
    cluster = GroupCluster()
    cluster.assign(0, 1)

    async def scenario(client: Client) -> None:
        async with member(client, cluster, instance_id="desk") as one:
            await until_owned(one, 0, 1)

    cluster.run(scenario)
    assert cluster.story[-2:] == ["revoked 0,1", "epoch -2"]
    assert {request.instance_id for request in cluster.asked("ConsumerGroupHeartbeat")} == {"desk"}


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moves_costs_a_member_nothing(code: ErrorCode) -> None:
    cluster = GroupCluster()
    cluster.assign(0, 1)

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            cluster.codes["ConsumerGroupHeartbeat"].extend([code] * 4)
            cluster.coordinator = 1
            for _ in range(40):
                await client.clock.sleep(0.5)
                assert one.assignment == orders(0, 1)

    cluster.run(scenario)


@pytest.mark.parametrize("fault", [SWALLOW, DROP_BEFORE, DROP_AFTER])
def test_without_answers_everything_is_lost_a_session_after_the_last_heartbeat_was_sent(fault: Fault) -> None:
    cluster = GroupCluster()
    cluster.assign(0, 1)
    is_cut = [False]
    sent_s = [0.0]

    def cut(node: int, request: Any) -> Fault:
        if not isinstance(request, ConsumerGroupHeartbeatRequest):
            return None
        if is_cut[0]:
            return fault
        sent_s[0] = cluster.clock.monotonic()
        return None

    cluster.faults = cut

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            await client.clock.sleep(4)
            is_cut[0] = True
            await client.clock.sleep(sent_s[0] + SESSION_S - 0.01 - client.clock.monotonic())
            assert one.assignment == orders(0, 1) and "lost 0,1" not in cluster.story
            await client.clock.sleep(0.02)
            assert one.assignment == () and "lost 0,1" in cluster.story
            is_cut[0] = False
            cluster.assign(0, 1)
            await until_owned(one, 0, 1)

    cluster.run(scenario)
    calls = [one for one in cluster.story if not one.startswith("epoch")]
    assert calls == ["assigned 0,1", "lost 0,1", "assigned 0,1", "revoked 0,1"]


def test_a_member_that_takes_longer_than_a_rebalance_waits_owns_nothing_any_more() -> None:
    """The coordinator fences it, though each heartbeat is answered."""
    cluster = GroupCluster()
    cluster.assign(0, 1)
    settings = MemberSettings(session_timeout_ms=10_000, rebalance_timeout_ms=20_000)
    seen: list[tuple[TopicPartition, ...]] = []

    async def scenario(client: Client) -> None:
        async def wait(partitions: tuple[TopicPartition, ...]) -> None:
            for _ in range(25):
                seen.append(one.assignment)
                await client.clock.sleep(1)

        one = member(client, cluster, on_revoked=wait, settings=settings)
        async with one:
            await until_owned(one, 0, 1)
            cluster.assign(0)
            await client.clock.sleep(30)

    cluster.run(scenario)
    owned_s = seen.index(())
    assert 16 <= owned_s <= 20, "counted from before the last heartbeat that took nothing away"
    assert set(seen[:owned_s]) == {orders(0, 1)}
    assert "lost 0" in cluster.story, "partition 1 was revoked, if too late"


def test_a_topic_that_was_made_anew_is_revoked_and_assigned() -> None:
    cluster = GroupCluster()
    cluster.assign(0, 1)

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            cluster.add_topic("orders", 1)
            cluster.assign(0)
            await until_owned(one, 0)
            await client.clock.sleep(0.1)

    cluster.run(scenario)
    calls = [one for one in cluster.story if not one.startswith("epoch")]
    assert calls == ["assigned 0,1", "revoked 0,1", "assigned 0", "revoked 0"]
    acknowledged = cluster.asked("ConsumerGroupHeartbeat")[-2].topic_partitions
    assert [topic.topic_id for topic in acknowledged] == [cluster.topic_ids["orders"]]


def test_partitions_of_a_topic_whose_name_is_not_known_yet_are_owned_when_it_is() -> None:
    cluster = GroupCluster()
    cluster.assign(0, 1)
    logs = cluster.topics.pop("orders")

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await client.clock.sleep(2 * INTERVAL_S)
            assert one.assignment == () and one.epoch == 1
            cluster.topics["orders"] = logs
            await client.clock.sleep(2 * INTERVAL_S)
            assert one.assignment == orders(0, 1)

    cluster.run(scenario)


def test_committed_offsets_are_asked_for_again_when_a_heartbeat_brought_a_new_epoch_meanwhile() -> None:
    cluster = GroupCluster()
    cluster.assign(0, 1)
    cluster.codes["OffsetFetch"].append(E.STALE_MEMBER_EPOCH)

    async def scenario(client: Client) -> Any:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            await client.clock.sleep(0.1)
            one.epoch = 0  # as if the heartbeat were on its way

            def answered(node: int, request: Any) -> Fault:
                if type(request).__name__ == "OffsetFetchRequest":
                    one.epoch = 1
                return None

            cluster.faults = answered
            return one.member_id, await one.committed(orders(0, 1))

    member_id, found = cluster.run(scenario)
    assert found == {orders(0)[0]: GroupOffset(7), orders(1)[0]: None}
    asked = [request.groups[0] for request in cluster.asked("OffsetFetch")]
    assert [(one.member_id, one.member_epoch) for one in asked] == [(member_id, 0), (member_id, 1)]
