"""Classic groups become consumer groups and back, while their members go on (KIP-848)."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.consumer.member import MemberState
from headpond.model import ErrorCode
from headpond.protocol.schema.classic_group_records import GroupMetadataKey, GroupMetadataValue
from headpond.protocol.schema.consumer_group_records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from headpond.protocol.schema.join_group import JoinGroupRequest, JoinGroupResponse
from unit.coordination.consumer_world import GROUP, REBALANCE_MS, World, assignment, no_wait, read_assignment

ALL = {"orders": [0, 1, 2, 3]}


def upgraded(**changes: Any) -> tuple[World, str]:
    """A classic member that held everything, and ``new``, which is to get half of it."""
    world = World(no_wait(**changes), orders=4)
    old = world.classic_member("orders", given=ALL)
    world.join("new", "orders")
    return world, old


def reconciled() -> tuple[World, str]:
    world, old = upgraded()
    world.classic_join(old, "orders", owned=ALL)
    world.classic_sync(old, 1)
    world.classic_join(old, "orders", owned={"orders": [0, 1]})
    world.classic_sync(old, 2)
    world.beat("new", 2)
    assert world.group().state == "Stable"
    return world, old


def classic_instance(world: World, instance_id: str, *topics: str) -> list[JoinGroupResponse]:
    """The answers to the first member of a new group."""
    answers = world.classic_join("", *(topics or ["orders"]), group_instance_id=instance_id)
    world.advance(0.01)
    return answers


# --- up


def test_a_classic_group_becomes_a_consumer_group_when_a_member_of_the_new_protocol_joins() -> None:
    world, old = upgraded()
    group = world.group()
    assert (group.epoch, group.target_epoch, group.state) == (2, 2, "Reconciling")
    member = group.members[old]
    assert (member.epoch, member.state, member.is_classic) == (1, MemberState.STABLE, True)
    assert world.owns(old) == ALL
    assert world.owns("new") == {}
    batch = world.batches[-1]
    assert isinstance(batch[0][0], GroupMetadataKey) and batch[0][1] is None
    targets = [value for _, value in batch if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)]
    assert [value.assignment_timestamp for value in targets] == [0, world.clock.now_ms()]
    world.restart()
    assert world.owns(old) == ALL


def test_an_empty_classic_group_is_replaced() -> None:
    world = World(orders=4)
    old = world.classic_member("orders", given=ALL)
    world.classic_leave((old, None))
    assert world.held(world.join("new", "orders")) == ALL
    assert isinstance(world.batches[-1][0][0], GroupMetadataKey)
    world.restart()
    assert world.owns("new") == ALL


def test_a_classic_group_whose_first_member_left_before_its_first_generation_is_replaced() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3_000), orders=4)
    first = world.classic_join("", "orders")[0].member_id
    assert world.classic_join(first, "orders") == []
    world.classic_leave((first, None))
    assert world.classic_group().state == "PreparingRebalance"
    assert world.held(world.join("new", "orders")) == ALL


def test_whoever_waits_in_the_classic_group_is_sent_to_join_again() -> None:
    world = World(orders=4)
    world.classic_member("orders", given=ALL)
    other = world.classic_join("", "orders")[0].member_id
    answers: list[JoinGroupResponse] = world.classic_join(other, "orders")
    assert answers == []  # the other member has not joined yet
    world.join("new", "orders")
    assert [answer.error_code for answer in answers] == [ErrorCode.REBALANCE_IN_PROGRESS]
    assert world.consumer.serves(GROUP)


def test_a_group_whose_last_assignor_not_everybody_supports_any_more_becomes_a_consumer_group() -> None:
    world = World(orders=4)
    old = world.classic_member("orders", given=ALL)
    assert world.classic_group().protocol_name == "cooperative-sticky"
    other = world.classic_join("", "orders", names=["range"])[0].member_id
    world.classic_join(other, "orders", names=["range"])
    assert world.classic_group().state == "PreparingRebalance"
    world.join("new", "orders")
    assert set(world.group().members) == {old, other, "new"}
    assert world.owns(old) == ALL
    assert world.group().members[other].topic_names == {"orders"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"consumer_migration_policy": "disabled"}, "online upgrade is disabled"),
        ({"consumer_migration_policy": "downgrade"}, "online upgrade is disabled"),
        ({"consumer_members_max": 0}, "the group size exceeds the consumer group maximum size"),
    ],
)
def test_an_upgrade_that_is_not_allowed_is_refused(changes: dict[str, Any], why: str) -> None:
    world = World(orders=4)
    world.classic_member("orders", given=ALL)
    world.settings = no_wait(**changes)
    assert world.error(lambda: world.join("new", "orders")) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {GROUP} to consumer group because {why}.",
    )
    assert world.classic_group().state == "Stable"


def test_without_migration_no_classic_member_joins_a_consumer_group() -> None:
    world = World(orders=4)
    world.join("new", "orders")
    world.settings = no_wait(consumer_migration_policy="disabled", consumer_members_max=1)
    (answer,) = world.classic_join("", "orders")
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert set(world.group().members) == {"new"}


def test_a_group_whose_members_are_no_consumers_stays_what_it_is() -> None:
    world = World(orders=4)
    worker = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="connect",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="eager", metadata=b"?")],
    )
    world.write(world.classic.join(worker, version=3, client_id="c", client_host="/h", reply=lambda _: None))
    code, message = world.error(lambda: world.join("new", "orders"))
    assert code is ErrorCode.GROUP_ID_NOT_FOUND
    assert message.endswith("because the group does not use the consumer embedded protocol.")


def test_what_a_custom_assignor_says_to_itself_would_be_lost() -> None:
    world = World(orders=4)
    old = world.classic_member("orders", given=ALL)
    world.classic_group().members[old].assignment = assignment(ALL, user_data=b"mine")
    code, message = world.error(lambda: world.join("new", "orders"))
    assert code is ErrorCode.GROUP_ID_NOT_FOUND
    assert "an unsupported custom assignor is in use" in message


def test_an_assignment_that_can_not_be_read_is_not_guessed() -> None:
    world = World(orders=4)
    old = world.classic_member("orders", given=ALL)
    world.classic_group().members[old].assignment = b"\0\0\0"
    assert world.error(lambda: world.join("new", "orders"))[1].endswith("the embedded consumer protocol is malformed.")


def test_heartbeats_to_a_classic_group_do_not_convert_it() -> None:
    world = World(orders=4)
    world.classic_member("orders", given=ALL)
    refusal = (ErrorCode.GROUP_ID_NOT_FOUND, f"Group {GROUP} is not a consumer group.")
    assert world.error(lambda: world.beat("new", 3)) == refusal
    assert world.error(lambda: world.leave("new")) == refusal


def test_an_upgrade_that_can_not_be_written_has_not_happened() -> None:
    world = World(orders=4)
    old = world.classic_member("orders", given=ALL)
    world.append_error = ErrorCode.NOT_COORDINATOR
    world.error(lambda: world.join("new", "orders"))
    assert world.classic_group().state == "Stable"
    assert world.classic_beat(old, 1) is ErrorCode.NONE


# --- classic members inside


def test_a_classic_member_gives_up_by_joining_and_gets_by_syncing() -> None:
    world, old = upgraded()
    assert world.classic_beat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    (joined,) = world.classic_join(old, "orders", owned=ALL)
    assert (joined.error_code, joined.generation_id, joined.leader, joined.members) == (0, 1, "", [])
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "cooperative-sticky")
    assert read_assignment(world.classic_sync(old, 1).assignment) == (3, {"orders": [0, 1]})
    assert world.held(world.beat("new", 2)) is None  # not given up yet
    assert world.classic_beat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    (joined,) = world.classic_join(old, "orders", owned={"orders": [0, 1]})
    assert joined.generation_id == 2
    assert read_assignment(world.classic_sync(old, 2).assignment) == (3, {"orders": [0, 1]})
    assert world.held(world.beat("new", 2)) == {"orders": [2, 3]}
    assert world.classic_beat(old, 2) is ErrorCode.NONE


def test_a_classic_member_that_waits_for_partitions_is_called_when_they_are_free() -> None:
    world, old = reconciled()
    late = world.classic_join("", "orders")[0]
    assert late.error_code == ErrorCode.MEMBER_ID_REQUIRED
    (joined,) = world.classic_join(late.member_id, "orders")
    assert joined.generation_id == 3
    assert read_assignment(world.classic_sync(late.member_id, 3).assignment) == (3, {})
    assert world.classic_beat(late.member_id, 3) is ErrorCode.NONE
    given_up = world.group().target_of("new")[world.id_of("orders")]
    world.beat("new", 2)
    world.beat("new", 2, owned={"orders": sorted(given_up)})
    world.classic_join(old, "orders", owned={"orders": [0, 1]})
    kept = sorted(world.group().target_of(old)[world.id_of("orders")])
    world.classic_join(old, "orders", owned={"orders": kept})
    assert world.classic_beat(late.member_id, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    world.classic_join(late.member_id, "orders")
    assert read_assignment(world.classic_sync(late.member_id, 3).assignment)[1] != {}


def test_classic_members_go_on_while_the_next_assignment_waits_for_its_time() -> None:
    world, old = reconciled()
    world.settings = GroupSettings(consumer_assignment_interval_ms=1_000)
    world.join("third", "orders")
    assert world.group().state == "Assigning"
    assert world.classic_beat(old, 2) is ErrorCode.NONE
    assert read_assignment(world.classic_sync(old, 2).assignment) == (3, {"orders": [0, 1]})
    world.advance(1)
    assert world.classic_beat(old, 2) is ErrorCode.NONE  # it comes with the next heartbeat of the new protocol
    world.beat("third", 2)
    assert world.classic_beat(old, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.classic_sync(old, 2).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_where_only_classic_members_are_left_they_bring_the_next_assignment_when_it_is_time() -> None:
    world, old = reconciled()
    world.settings = GroupSettings(consumer_assignment_interval_ms=1_000, consumer_migration_policy="upgrade")
    world.leave("new")
    assert world.classic_beat(old, 2) is ErrorCode.NONE
    world.advance(1)
    assert world.classic_beat(old, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    (joined,) = world.classic_join(old, "orders", owned={"orders": [0, 1]})
    assert read_assignment(world.classic_sync(old, joined.generation_id).assignment) == (3, ALL)
    assert world.classic_beat(old, joined.generation_id) is ErrorCode.NONE


def test_where_only_classic_members_are_left_they_are_told_when_a_topic_has_grown() -> None:
    world, old = reconciled()
    world.settings = no_wait(consumer_migration_policy="upgrade")
    world.leave("new")
    (joined,) = world.classic_join(old, "orders", owned={"orders": [0, 1]})
    world.classic_sync(old, joined.generation_id)
    world.restart()
    assert world.classic_beat(old, joined.generation_id) is ErrorCode.NONE  # looked at, and nothing is new
    world.put_topic("orders", 5)
    assert world.classic_beat(old, joined.generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
    (joined,) = world.classic_join(old, "orders", owned=ALL)
    assert read_assignment(world.classic_sync(old, joined.generation_id).assignment)[1] == {"orders": [0, 1, 2, 3, 4]}


def test_where_classic_members_may_not_join_they_are_not_sent_to() -> None:
    world, old = reconciled()
    world.settings = no_wait(consumer_migration_policy="disabled")
    world.leave("new")
    assert world.classic_beat(old, 2) is ErrorCode.NONE
    assert world.classic_join(old, "orders")[0].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.owns(old) == {"orders": [0, 1]}


def test_what_classic_members_are_refused() -> None:
    world, old = reconciled()
    assert world.classic_beat("who", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.classic_beat(old, 1) is ErrorCode.ILLEGAL_GENERATION
    assert world.classic_beat("new", 2) is ErrorCode.UNKNOWN_MEMBER_ID  # it does not speak the classic protocol
    assert world.classic_beat(old, 2, group_instance_id="pod-0") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.classic_sync(old, 7).error_code == ErrorCode.ILLEGAL_GENERATION
    assert world.classic_sync(old, 2, protocol_name="range").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.classic_sync(old, 2, protocol_type="connect").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.classic_join("", "orders", names=["mine"])[0].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.classic_join("", session_timeout_ms=1)[0].error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    world.join("third", "orders")
    assert world.classic_sync(old, 2).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    world.settings = no_wait(consumer_members_max=3)
    assert world.classic_join("", "orders")[0].error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_classic_member_commits_with_its_generation() -> None:
    world, old = reconciled()
    for version in (2, 8):
        world.group().check_commit(
            member_id=old,
            group_instance_id=None,
            generation_or_epoch=2,
            is_transactional=False,
            request_version=version,
        )


def test_a_classic_member_has_the_session_that_it_asked_for() -> None:
    world, old = reconciled()
    world.advance(9)
    assert old in world.group().members
    world.advance(1.1)
    assert old not in world.group().members
    assert "new" in world.group().members


def test_a_classic_member_that_does_not_join_again_in_time_is_put_out() -> None:
    world, old = upgraded()
    for _ in range(REBALANCE_MS // 1_000):
        assert world.classic_beat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
        world.advance(1)
        world.beat("new", world.group().members["new"].epoch)
    world.advance(1)
    assert list(world.group().members) == ["new"]


def test_a_classic_member_that_does_not_sync_in_time_is_put_out() -> None:
    world, old = upgraded()
    world.classic_join(old, "orders", owned={}, session_timeout_ms=1_800_000)
    world.advance(REBALANCE_MS / 1_000 + 1)
    assert list(world.group().members) == ["new"]


def test_a_classic_member_that_was_put_out_does_not_come_back_with_what_it_had() -> None:
    world, old = reconciled()
    world.classic_leave((old, None))
    (refused,) = world.classic_join(old, "orders", owned={"orders": [0, 1]})
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (joined,) = world.classic_join(old, "orders")
    assert joined.error_code == ErrorCode.NONE


def test_a_classic_member_that_names_its_topics_and_owns_nothing_of_them_is_taken_in() -> None:
    world, _ = reconciled()
    (joined,) = world.classic_join("newcomer", "orders", owned={"orders": []})
    assert joined.error_code == ErrorCode.NONE


def test_members_leave_by_leave_group_one_rebalance_for_all() -> None:
    world, old = reconciled()
    world.join("pod", "orders", instance_id="pod-0")
    response = world.classic_leave(("new", None), ("", "pod-0"), ("who", None), ("", "pod-9"))
    assert [member.error_code for member in response.members] == [0, 0, 25, 25]
    assert world.classic_group().state == "PreparingRebalance"  # only the classic member is left
    assert list(world.classic_group().members) == [old]


def test_a_classic_member_may_come_back_with_the_new_protocol() -> None:
    world, old = reconciled()
    world.classic_leave((old, None))
    assert list(world.group().members) == ["new"]
    world.join("old-again", "orders")
    assert set(world.group().members) == {"new", "old-again"}


# --- down


def test_the_group_is_classic_again_when_the_last_member_of_the_new_protocol_leaves() -> None:
    world, old = reconciled()
    assert world.leave("new").member_epoch == -1
    group = world.classic_group()
    assert (group.generation, group.protocol_name, group.leader_id) == (2, "cooperative-sticky", old)
    assert read_assignment(group.members[old].assignment) == (3, {"orders": [0, 1]})
    assert world.classic_beat(old, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    (joined,) = world.classic_join(old, "orders")
    assert (joined.generation_id, joined.leader) == (3, old)
    batch = next(each for each in world.batches if isinstance(each[-1][1], GroupMetadataValue) and len(each) > 1)
    assert isinstance(batch[-2][0], ConsumerGroupMetadataKey) and batch[-2][1] is None
    world.restart()
    assert list(world.classic_group().members) == [old]


def test_a_coordinator_that_takes_over_still_asks_everybody_to_join_after_a_downgrade() -> None:
    world, old = reconciled()
    world.leave("new")
    world.restart()
    assert world.classic_beat(old, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    (joined,) = world.classic_join(old, "orders", owned={"orders": [0, 1]})
    world.classic_sync(old, joined.generation_id, given={old: ALL})
    world.restart()
    assert world.classic_group().state == "Stable"
    assert world.classic_beat(old, joined.generation_id) is ErrorCode.NONE


def test_the_same_when_it_is_fenced() -> None:
    world, old = reconciled()
    for _ in range(6):
        world.advance(9)
        world.classic_beat(old, 2)
    assert list(world.classic_group().members) == [old]


def test_sessions_of_classic_members_go_on_after_the_downgrade() -> None:
    world, old = reconciled()
    world.leave("new")
    world.advance(11)
    assert world.classic_group().is_empty
    assert old not in world.classic_group().members


@pytest.mark.parametrize("changes", [{"consumer_migration_policy": "upgrade"}, {"members_max": 0}])
def test_without_permission_to_downgrade_it_stays_a_consumer_group_of_classic_members(changes: dict[str, Any]) -> None:
    world, old = reconciled()
    world.settings = no_wait(**changes)
    world.leave("new")
    assert list(world.group().members) == [old]
    (joined,) = world.classic_join(old, "orders", owned={"orders": [0, 1]})
    assert read_assignment(world.classic_sync(old, joined.generation_id).assignment) == (3, ALL)


def test_an_empty_consumer_group_becomes_a_classic_one_when_a_classic_member_joins() -> None:
    world = World(orders=4)
    world.join("new", "orders")
    world.leave("new")
    assert not world.consumer.serves(GROUP)
    old = world.classic_member("orders", given=ALL)
    assert world.classic_group().state == "Stable"
    world.restart()
    assert list(world.classic_group().members) == [old]


# --- static members that change their protocol


def test_a_static_classic_member_comes_back_with_the_new_protocol() -> None:
    world, _ = reconciled()
    (pod,) = world.classic_join("", "orders", group_instance_id="pod-0")
    assert pod.error_code == 0
    response = world.join("pod-new", "orders", instance_id="pod-0")
    assert response.error_code == 0
    assert not world.group().members["pod-new"].is_classic
    assert pod.member_id not in world.group().members
    assert world.classic_beat(pod.member_id, 3, group_instance_id="pod-0") is ErrorCode.FENCED_INSTANCE_ID


def test_the_last_static_member_of_the_new_protocol_comes_back_as_a_classic_one() -> None:
    world = World(orders=4)
    old = world.classic_member("orders", given=ALL)
    world.join("pod-new", "orders", instance_id="pod-0")
    (joined,) = world.classic_join("", "orders", group_instance_id="pod-0")
    group = world.classic_group()
    assert (joined.error_code, joined.generation_id) == (0, 2)
    assert set(group.members) == {old, joined.member_id}
    assert group.static_ids == {"pod-0": joined.member_id}
    assert (group.state, group.generation) == ("PreparingRebalance", 2)
    assert read_assignment(group.members[joined.member_id].assignment)[1] == {"orders": [2, 3]}
    world.restart()
    assert set(world.classic_group().members) == {old, joined.member_id}


def test_a_static_member_whose_first_join_waits_comes_back_with_the_new_protocol() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3_000), orders=4)
    assert world.classic_join("", "orders", group_instance_id="pod-0") == []
    response = world.join("pod-new", "orders", instance_id="pod-0")
    assert response.member_epoch == 1  # 0 is said by those who join
    assert world.held(response) == ALL


def test_a_rebalance_that_was_under_way_goes_on_also_if_a_static_member_only_changes_its_protocol() -> None:
    world = World(orders=4)
    (pod,) = classic_instance(world, "pod-0")
    world.classic_sync(pod.member_id, 1, group_instance_id="pod-0", given={pod.member_id: ALL})
    other = world.classic_join("", "orders")[0].member_id
    world.classic_join(other, "orders")  # it waits for pod-0 to join again
    assert world.held(world.join("pod-new", "orders", instance_id="pod-0")) == {"orders": [0, 1]}
    (joined,) = world.classic_join(other, "orders")
    assert read_assignment(world.classic_sync(other, joined.generation_id).assignment) == (3, {"orders": [2, 3]})


@pytest.mark.parametrize(
    ("topic", "partition_count"),
    [
        pytest.param("orders", 6, id="has grown"),
        pytest.param("orders", 3, id="was made anew with fewer partitions"),
        pytest.param("payments", 2, id="was missing"),
    ],
)
def test_what_has_changed_of_topics_since_the_last_classic_rebalance_is_seen_when_a_static_member_changes_its_protocol(
    topic: str, partition_count: int
) -> None:
    world = World(orders=4)
    (pod,) = classic_instance(world, "pod-0", "orders", "payments")
    world.classic_sync(pod.member_id, 1, group_instance_id="pod-0", given={pod.member_id: ALL})
    world.put_topic(topic, partition_count)
    response = world.join("pod-new", "orders", "payments", instance_id="pod-0")
    assert world.held(response) == ALL | {topic: list(range(partition_count))}


def test_a_topic_that_had_grown_is_assigned_also_if_the_first_member_of_the_new_protocol_reads_nothing() -> None:
    world = World(no_wait(), orders=4)
    old = world.classic_member("orders", given=ALL)
    world.put_topic("orders", 5)
    world.join("new", subscribed_topic_regex="none.*")
    assert world.classic_beat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    (joined,) = world.classic_join(old, "orders", owned=ALL)
    assert read_assignment(world.classic_sync(old, joined.generation_id).assignment)[1] == {"orders": [0, 1, 2, 3, 4]}


def test_nobody_joins_again_when_a_static_member_changes_its_protocol_and_all_partitions_are_held() -> None:
    world = World(orders=4)
    (pod,) = classic_instance(world, "pod-0")
    world.classic_sync(pod.member_id, 1, group_instance_id="pod-0", given={pod.member_id: ALL})
    assert world.held(world.join("pod-new", "orders", instance_id="pod-0")) == ALL
    assert (world.group().epoch, world.group().state) == (1, "Stable")


def test_what_a_member_had_not_got_yet_is_given_out_when_a_static_member_comes_back_the_old_way() -> None:
    world = World(orders=4)
    world.join("pod-new", "orders", instance_id="pod-0")
    old = world.classic_join("", "orders")[0].member_id
    (joined,) = world.classic_join(old, "orders")
    assert read_assignment(world.classic_sync(old, joined.generation_id).assignment) == (3, {})  # it waits for pod-0
    world.classic_join("", "orders", group_instance_id="pod-0")
    assert world.classic_beat(old, joined.generation_id) is ErrorCode.REBALANCE_IN_PROGRESS


def test_with_another_subscription_everybody_joins_again() -> None:
    world = World(orders=4, payments=1)
    world.classic_member("orders", given=ALL)
    world.join("pod-new", "orders", instance_id="pod-0")
    world.classic_join("", "payments", group_instance_id="pod-0")
    assert world.classic_group().state == "PreparingRebalance"
