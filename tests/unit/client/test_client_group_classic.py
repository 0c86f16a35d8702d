"""A classic member: in and out of generations, and what it may trust when nobody answers."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.client import Client, ClientError
from headpond.client.consumer_protocol import read_assignment, write_assignment
from headpond.client.group.classic import ClassicMember
from headpond.client.group.member import MemberSettings
from headpond.client.group.ranges import Subscriber, assign_ranges
from headpond.client.group_admin import GroupOffset
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.heartbeat import HeartbeatRequest
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.metadata import MetadataRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from unit.client.group_cluster import INTERVAL_S, GroupCluster, orders
from unit.client.memory_cluster import DROP_AFTER, DROP_BEFORE, SWALLOW, Fault

E = ErrorCode
SESSION_S = 10.0
SETTINGS = MemberSettings(
    session_timeout_ms=int(SESSION_S * 1_000),
    rebalance_timeout_ms=60_000,
    heartbeat_interval_ms=int(INTERVAL_S * 1_000),
)
INTO_THE_GROUP = ["JoinGroup", "SyncGroup", "Heartbeat"]


def member(client: Client, cluster: GroupCluster, **options: Any) -> ClassicMember:
    return ClassicMember(client, "billing", ["orders"], **cluster.callbacks(settings=SETTINGS) | options)


async def until_owned(one: ClassicMember, *partitions: int) -> None:
    while one.assignment != orders(*partitions):
        await one._client.clock.sleep(0.01)


# ---- into a generation


def test_a_member_joins_with_the_id_that_it_is_given_and_assigns_when_it_leads() -> None:
    cluster = GroupCluster()
    cluster.add_other("a", ["orders"])

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 1)
            assert (one.member_id, one.epoch, one.failure) == ("member-1", 1, None)

    cluster.run(scenario)
    assert cluster.story == ["JoinGroup", *INTO_THE_GROUP, "assigned 1", "revoked 1", "LeaveGroup"]
    assert [request.member_id for request in cluster.asked("JoinGroup")] == ["", "member-1"]
    assert read_assignment(cluster.synced["a"]) == list(orders(0))


def test_a_member_that_does_not_lead_takes_what_the_leader_says() -> None:
    cluster = GroupCluster()
    cluster.leader = "a"
    cluster.synced["member-1"] = write_assignment(orders(1))

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 1)

    cluster.run(scenario)
    assert [request.assignments for request in cluster.asked("SyncGroup")] == [[]]


def test_nothing_is_owned_before_a_heartbeat_of_the_generation_was_answered() -> None:
    """SyncGroup does not always restart the session: only a heartbeat tells when it began at the earliest."""
    cluster = GroupCluster()
    cluster.codes["Heartbeat"].append(E.REBALANCE_IN_PROGRESS)

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)

    cluster.run(scenario)
    assert cluster.story[: cluster.story.index("assigned 0,1")] == ["JoinGroup", *INTO_THE_GROUP, *INTO_THE_GROUP]


@pytest.mark.parametrize("request_name", ["JoinGroup", "SyncGroup"])
@pytest.mark.parametrize(
    ("code", "ids"),
    [
        (E.REBALANCE_IN_PROGRESS, ["", "member-1", "member-1"]),
        (E.UNKNOWN_MEMBER_ID, ["", "member-1", "", "member-2"]),
    ],
    ids=["rebalance", "unknown"],
)
def test_a_join_that_is_refused_for_now_is_repeated(request_name: str, code: ErrorCode, ids: list[str]) -> None:
    cluster = GroupCluster()

    def refuse_once(node: int, request: Any) -> Fault:
        is_it = type(request).__name__ == f"{request_name}Request" and request.member_id == "member-1"
        if is_it and node == cluster.coordinator and code not in cluster.codes["used"]:
            cluster.codes["used"].append(code)
            cluster.codes[request_name].append(code)
        return None

    cluster.faults = refuse_once

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)

    cluster.run(scenario)
    assert [request.member_id for request in cluster.asked("JoinGroup")] == ids
    assert [one for one in cluster.story if " " in one] == ["assigned 0,1", "revoked 0,1"]


def test_a_join_whose_answer_was_lost_is_repeated() -> None:
    cluster = GroupCluster()
    lost: list[str] = []

    def lose_each_once(node: int, request: Any) -> Fault:
        name = type(request).__name__
        if name in ("JoinGroupRequest", "SyncGroupRequest", "HeartbeatRequest") and name not in lost:
            lost.append(name)
            return DROP_AFTER
        return None

    cluster.faults = lose_each_once

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)

    cluster.run(scenario)
    assert len(lost) == 3


def test_a_leader_that_learns_no_partitions_does_not_assign() -> None:
    cluster = GroupCluster()
    metadata_is_down = [True]

    def without_metadata(node: int, request: Any) -> Fault:
        is_ours = isinstance(request, MetadataRequest) and request.topics
        return DROP_BEFORE if is_ours and metadata_is_down[0] else None

    cluster.faults = without_metadata

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await client.clock.sleep(10)
            assert "SyncGroup" not in cluster.story
            metadata_is_down[0] = False
            await until_owned(one, 0, 1)

    cluster.run(scenario)


# ---- out of a generation


def test_partitions_are_revoked_before_the_member_joins_again_and_heartbeats_go_on_meanwhile() -> None:
    cluster = GroupCluster()
    seen: list[Any] = []

    async def scenario(client: Client) -> None:
        async def commit(partitions: tuple[TopicPartition, ...]) -> None:
            await client.clock.sleep(2 * SESSION_S)
            seen.append((one.assignment, partitions, await one.commit({partitions[0]: GroupOffset(5)})))
            cluster.story.append("revoked")

        one = member(client, cluster, on_revoked=commit)
        async with one:
            await until_owned(one, 0, 1)
            cluster.codes["Heartbeat"].extend([E.REBALANCE_IN_PROGRESS] * 6)
            while one.epoch < 2 or not one.assignment:
                await client.clock.sleep(0.1)

    cluster.run(scenario)
    owned = orders(0, 1)
    assert seen[0] == (owned, owned, {owned[0]: E.NONE})
    after = cluster.story[cluster.story.index("assigned 0,1") + 1 :]
    beats = after.index("OffsetCommit")
    assert 5 <= beats <= 8 and set(after[:beats]) == {"Heartbeat"}
    assert after[beats : beats + 3] == ["OffsetCommit", "revoked", "JoinGroup"]
    assert "lost" not in " ".join(cluster.story)


@pytest.mark.parametrize(
    ("code", "rejoins_as"), [(E.UNKNOWN_MEMBER_ID, ""), (E.ILLEGAL_GENERATION, "member-1")], ids=lambda one: str(one)
)
def test_a_member_that_was_removed_has_lost_everything_and_joins_again(code: ErrorCode, rejoins_as: str) -> None:
    cluster = GroupCluster()

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            cluster.codes["Heartbeat"].append(code)
            while "lost 0,1" not in cluster.story:
                await client.clock.sleep(0.01)
            await until_owned(one, 0, 1)

    cluster.run(scenario)
    assert [request.member_id for request in cluster.asked("JoinGroup")][2] == rejoins_as
    assert [one for one in cluster.story if " " in one] == ["assigned 0,1", "lost 0,1", "assigned 0,1", "revoked 0,1"]


@pytest.mark.parametrize("request_name", ["JoinGroup", "SyncGroup", "Heartbeat"])
def test_a_static_member_that_was_replaced_gives_up_for_good(request_name: str) -> None:
    cluster = GroupCluster()

    async def scenario(client: Client) -> None:
        async with member(client, cluster, instance_id="desk") as one:
            if request_name == "Heartbeat":
                await until_owned(one, 0, 1)
            cluster.codes[request_name].append(E.FENCED_INSTANCE_ID)
            await client.clock.sleep(20)
            assert one.assignment == ()
            assert isinstance(one.failure, ClientError) and one.failure.code is E.FENCED_INSTANCE_ID
            with pytest.raises(ClientError, match="FENCED_INSTANCE_ID"):
                await one.commit({orders(0)[0]: GroupOffset(1)})

    cluster.run(scenario)
    lost = [one for one in cluster.story if one.startswith("lost")]
    assert lost == (["lost 0,1"] if request_name == "Heartbeat" else [])
    assert cluster.told("Heartbeat")[-1] != "LeaveGroup", "the id is another's now"


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moves_costs_a_member_nothing(code: ErrorCode) -> None:
    cluster = GroupCluster()

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            cluster.codes["Heartbeat"].extend([code] * 4)
            cluster.coordinator = 1
            for _ in range(40):
                await client.clock.sleep(0.5)
                assert one.assignment == orders(0, 1)
            assert one.epoch == 1

    cluster.run(scenario)
    assert {node for node, request, _ in cluster.requests if type(request).__name__ == "HeartbeatRequest"} == {1, 2}


@pytest.mark.parametrize("fault", [SWALLOW, DROP_BEFORE, DROP_AFTER])
def test_without_answers_everything_is_lost_a_session_after_the_last_heartbeat_was_sent(fault: Fault) -> None:
    cluster = GroupCluster()
    is_cut = [False]
    sent_s = [0.0]

    def cut(node: int, request: Any) -> Fault:
        if type(request).__name__ != "HeartbeatRequest":
            return fault if is_cut[0] and not isinstance(request, FindCoordinatorRequest | MetadataRequest) else None
        if is_cut[0]:
            return fault
        sent_s[0] = cluster.clock.monotonic()
        return None

    cluster.faults = cut

    async def scenario(client: Client) -> None:
        one = member(client, cluster)
        async with one:
            await until_owned(one, 0, 1)
            await client.clock.sleep(4)
            is_cut[0] = True
            end_s = sent_s[0] + SESSION_S
            await client.clock.sleep(end_s - 0.01 - client.clock.monotonic())
            assert one.assignment == orders(0, 1) and "lost 0,1" not in cluster.story
            await client.clock.sleep(0.02)
            assert one.assignment == () and "lost 0,1" in cluster.story
            refused = dict.fromkeys(orders(0), E.UNKNOWN_MEMBER_ID)
            assert await one.commit({orders(0)[0]: GroupOffset(1)}) == refused and "OffsetCommit" not in cluster.story
            is_cut[0] = False
            await until_owned(one, 0, 1)
            is_cut[0] = False

    cluster.run(scenario)
    assert [one for one in cluster.story if " " in one][:3] == ["assigned 0,1", "lost 0,1", "assigned 0,1"]


def test_a_process_that_slept_past_its_session_owns_nothing_from_its_first_instruction_on() -> None:
    cluster = GroupCluster()

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            cluster.clock.stall(SESSION_S)
            assert one.assignment == ()
            await until_owned(one, 0, 1)

    cluster.run(scenario)
    assert "lost 0,1" in cluster.story


def test_an_answer_that_comes_when_the_session_is_over_does_not_bring_back_what_was_lost() -> None:
    cluster = GroupCluster()
    seen: list[Any] = []

    async def scenario(client: Client) -> None:
        def sleep(node: int, request: Any) -> Fault:
            if isinstance(request, HeartbeatRequest) and one.assignment:
                cluster.clock.stall(SESSION_S - 2)  # this heartbeat would be good for 2 more seconds
                seen.append(one.assignment)
            return None

        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            cluster.faults = sleep
            await client.clock.sleep(1.5 * INTERVAL_S)
            cluster.faults = lambda node, request: None
            await until_owned(one, 0, 1)

    cluster.run(scenario)
    assert seen == [()] and "lost 0,1" in cluster.story


def test_a_member_that_takes_longer_than_a_rebalance_waits_owns_nothing_any_more() -> None:
    """The coordinator goes on without it, though each heartbeat is answered."""
    cluster = GroupCluster()
    settings = MemberSettings(session_timeout_ms=10_000, rebalance_timeout_ms=20_000, heartbeat_interval_ms=3_000)
    seen: list[tuple[TopicPartition, ...]] = []

    async def scenario(client: Client) -> None:
        async def wait(partitions: tuple[TopicPartition, ...]) -> None:
            for _ in range(25):
                seen.append(one.assignment)
                await client.clock.sleep(1)

        one = member(client, cluster, on_revoked=wait, settings=settings)
        async with one:
            await until_owned(one, 0, 1)
            cluster.codes["Heartbeat"].extend([E.REBALANCE_IN_PROGRESS] * 9)
            await client.clock.sleep(30)

    cluster.run(scenario)
    owned_s = seen.index(())
    assert 16 <= owned_s <= 20, "counted from before the last heartbeat that knew of no rebalance"
    assert set(seen[:owned_s]) == {orders(0, 1)}


# ---- the leader


def test_the_leader_joins_again_when_a_topic_has_more_partitions() -> None:
    cluster = GroupCluster()
    settings = MemberSettings(session_timeout_ms=10_000, metadata_max_age_ms=20_000)

    async def scenario(client: Client) -> None:
        async with member(client, cluster, settings=settings) as one:
            await until_owned(one, 0, 1)
            cluster.topics["orders"] += cluster.add_topic("other")
            await client.clock.sleep(15)
            assert one.epoch == 1
            await client.clock.sleep(15)
            assert (one.epoch, one.assignment) == (2, orders(0, 1, 2))

    cluster.run(scenario)


def test_a_topic_that_appears_is_found_with_the_next_heartbeat() -> None:
    cluster = GroupCluster()
    logs, topic_id = cluster.topics.pop("orders"), cluster.topic_ids["orders"]

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await client.clock.sleep(20)
            assert (one.epoch, one.assignment) == (1, ())
            cluster.topics["orders"], cluster.topic_ids["orders"] = logs, topic_id
            await client.clock.sleep(2 * INTERVAL_S)
            assert one.assignment == orders(0, 1)

    cluster.run(scenario)


def test_ranges_are_cut_as_kafka_cuts_them() -> None:
    subscribers = [
        Subscriber("c", None, ["t", "u"]),
        Subscriber("d", "static", ["t"]),
        Subscriber("b", None, ["t", "u", "nowhere"]),
    ]
    found = assign_ranges(subscribers, {"t": 5, "u": 1, "nowhere": 0})
    texts = {member_id: [str(tp) for tp in partitions] for member_id, partitions in found.items()}
    assert texts == {"d": ["t-0", "t-1"], "b": ["t-2", "t-3", "u-0"], "c": ["t-4"]}


# ---- leaving


def test_a_static_member_leaves_without_a_word() -> None:
    cluster = GroupCluster()

    async def scenario(client: Client) -> None:
        async with member(client, cluster, instance_id="desk") as one:
            await until_owned(one, 0, 1)
            assert one.member_id == "desk-1"

    cluster.run(scenario)
    assert cluster.story[-1] == "revoked 0,1"


def test_a_member_can_leave_while_its_join_waits_for_others() -> None:
    cluster = GroupCluster()
    cluster.faults = lambda node, request: (
        SWALLOW if isinstance(request, JoinGroupRequest) and request.member_id else None
    )

    async def scenario(client: Client) -> None:
        async with member(client, cluster):
            await client.clock.sleep(5)
        assert client.clock.monotonic() < 6

    cluster.run(scenario)
    assert len([one for one in cluster.connections if one.node == cluster.coordinator]) == 2, "the first is busy"
    (left,) = cluster.asked("LeaveGroup")
    assert [one.member_id for one in left.members] == ["member-1"]


def test_leaving_ends_when_no_coordinator_answers() -> None:
    cluster = GroupCluster()

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            cluster.down.update(cluster.nodes)
            for node in cluster.nodes:
                cluster.stop(node)
        await one.leave()
        assert one.assignment == ()

    cluster.run(scenario)
    assert cluster.story[-1] == "revoked 0,1"


def test_an_abandoned_member_says_nothing_and_calls_nothing() -> None:
    cluster = GroupCluster()

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            await one.abandon()
            assert one.assignment == ()

    cluster.run(scenario)
    assert cluster.story[-1] == "assigned 0,1"


def test_leaving_waits_for_the_callback_that_runs() -> None:
    cluster = GroupCluster()

    async def scenario(client: Client) -> None:
        async def slow(partitions: tuple[TopicPartition, ...]) -> None:
            await client.clock.sleep(20)
            cluster.story.append("assigned at last")

        async with member(client, cluster, on_assigned=slow) as one:
            await until_owned(one, 0, 1)

    cluster.run(scenario)
    assert cluster.told("Heartbeat")[-3:] == ["assigned at last", "revoked 0,1", "LeaveGroup"]


def test_leaving_does_not_revoke_what_is_being_revoked_once_more() -> None:
    cluster = GroupCluster()
    revoked: list[tuple[TopicPartition, ...]] = []

    async def scenario(client: Client) -> None:
        async def slow(partitions: tuple[TopicPartition, ...]) -> None:
            revoked.append(partitions)
            await client.clock.sleep(2)

        async with member(client, cluster, on_revoked=slow) as one:
            await until_owned(one, 0, 1)
            cluster.codes["Heartbeat"].append(E.REBALANCE_IN_PROGRESS)
            while not revoked:
                await client.clock.sleep(0.01)

    cluster.run(scenario)
    assert revoked == [orders(0, 1)]
    assert cluster.story[-1] == "LeaveGroup" and "lost" not in " ".join(cluster.story)


def test_a_callback_that_raises_ends_the_member() -> None:
    cluster = GroupCluster()

    async def fail(partitions: tuple[TopicPartition, ...]) -> None:
        raise KeyError("a bug")

    async def scenario(client: Client) -> None:
        async with member(client, cluster, on_assigned=fail) as one:
            await client.clock.sleep(5)
            assert one.assignment == () and isinstance(one.failure, KeyError)
            with pytest.raises(KeyError):
                await one.commit({orders(0)[0]: GroupOffset(1)})

    cluster.run(scenario)
    assert cluster.story[-1] == "LeaveGroup"


# ---- offsets


def test_a_commit_names_the_member_and_its_generation_and_says_what_was_refused() -> None:
    cluster = GroupCluster()
    cluster.codes["OffsetCommit"].extend([E.COORDINATOR_LOAD_IN_PROGRESS, E.ILLEGAL_GENERATION])

    async def scenario(client: Client) -> Any:
        async with member(client, cluster, instance_id="desk") as one:
            await until_owned(one, 0, 1)
            offsets = {tp: GroupOffset(5, 2, "note") for tp in orders(1, 0)}
            return await one.commit(offsets), await one.commit(offsets), await one.committed(orders(1, 0))

    refused, done, found = cluster.run(scenario)
    assert refused == dict.fromkeys(orders(0, 1), E.ILLEGAL_GENERATION) and done == dict.fromkeys(orders(0, 1), E.NONE)
    assert list(found.items()) == list(zip(orders(0, 1), (GroupOffset(7), None), strict=True))
    request = cluster.asked("OffsetCommit")[0]
    named = (request.member_id, request.generation_id_or_member_epoch, request.group_instance_id)
    assert named == ("desk-1", 1, "desk")
    row = request.topics[0].partitions[0]
    assert (row.committed_offset, row.committed_leader_epoch, row.committed_metadata) == (5, 2, "note")
    assert cluster.asked("OffsetFetch")[0].groups[0].member_id is None


def test_a_commit_without_an_answer_is_sent_once_and_its_outcome_is_unknown() -> None:
    cluster = GroupCluster()
    cluster.faults = lambda node, request: DROP_AFTER if isinstance(request, OffsetCommitRequest) else None

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            with pytest.raises(ClientError) as caught:
                await one.commit({orders(0)[0]: GroupOffset(5)})
            assert caught.value.is_outcome_unknown

    cluster.run(scenario)
    assert len(cluster.asked("OffsetCommit")) == 1


@pytest.mark.parametrize("then", [E.UNKNOWN_MEMBER_ID, E.NOT_COORDINATOR])
@pytest.mark.parametrize("first", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_a_commit_that_a_lost_coordinator_may_have_written_is_not_called_refused(
    first: ErrorCode, then: ErrorCode
) -> None:
    cluster = GroupCluster()
    cluster.codes["OffsetCommit"].extend([first, *[then] * 200])

    async def scenario(client: Client) -> None:
        async with member(client, cluster) as one:
            await until_owned(one, 0, 1)
            with pytest.raises(ClientError, match="outcome unknown") as caught:
                await one.commit({orders(0)[0]: GroupOffset(5)})
            assert caught.value.is_outcome_unknown

    cluster.run(scenario)


def test_two_members_of_one_client_do_not_wait_for_each_others_joins() -> None:
    cluster = GroupCluster()
    cluster.faults = lambda node, request: (
        SWALLOW if isinstance(request, JoinGroupRequest) and request.group_id == "stuck" else None
    )

    async def scenario(client: Client) -> None:
        async with ClassicMember(client, "stuck", ["orders"], settings=SETTINGS), member(client, cluster) as one:
            await until_owned(one, 0, 1)
            # A broker answers one after the other what comes over one connection.
            assert len([one for one in cluster.connections if one.node == cluster.coordinator]) == 2

    cluster.run(scenario)
