"""SyncGroup of classic groups: the leader's assignment reaches everybody, once it is in the log."""

from __future__ import annotations

import pytest

from headpond.model import ErrorCode
from unit.coordination.classic_world import DELAY_MS, REBALANCE_MS, World


def completing(world: World, count: int = 2, **how: object) -> list[str]:
    """A group in its sync phase; the leader first."""
    waiting = [world.enter(**how) for _ in range(count)]
    world.advance_ms(2 * DELAY_MS)
    assert world.group().state == "CompletingRebalance"
    assert waiting[0][1].answer.leader == waiting[0][0]
    return [member_id for member_id, _ in waiting]


def test_followers_wait_for_the_leader() -> None:
    world = World()
    leader_id, follower_id = completing(world)
    follower = world.sync(follower_id, 1)
    assert follower.is_parked
    leader = world.sync(leader_id, 1, {leader_id: b"a", follower_id: b"b"})
    assert (leader.answer.assignment, follower.answer.assignment) == (b"a", b"b")
    assert (follower.answer.protocol_type, follower.answer.protocol_name) == ("consumer", "range")
    assert world.group().state == "Stable"


def test_nobody_learns_of_an_assignment_before_it_is_committed() -> None:
    world = World()
    leader_id, follower_id = completing(world)
    world.holds_commits = True
    leader = world.sync(leader_id, 1, {leader_id: b"a", follower_id: b"b"})
    follower = world.sync(follower_id, 1)
    assert leader.is_parked and follower.is_parked
    assert world.group().state == "CompletingRebalance"
    world.commit()
    assert (leader.answer.assignment, follower.answer.assignment) == (b"a", b"b")


def test_an_assignment_that_cannot_be_written_starts_a_rebalance() -> None:
    world = World()
    leader_id, follower_id = completing(world)
    follower = world.sync(follower_id, 1)
    world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    leader = world.sync(leader_id, 1, {leader_id: b"a", follower_id: b"b"})
    assert leader.error == follower.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.group().state == "PreparingRebalance"
    assert all(member.assignment == b"" for member in world.group().members.values())


def test_an_assignment_that_comes_too_late_is_nobodys() -> None:
    world = World()
    leader_id, follower_id = completing(world)
    world.holds_commits = True
    leader = world.sync(leader_id, 1, {leader_id: b"a", follower_id: b"b"})
    world.enter()
    assert leader.error == ErrorCode.REBALANCE_IN_PROGRESS
    world.commit()
    assert world.group().state == "PreparingRebalance"
    assert world.group().members[follower_id].assignment == b""


def test_who_is_assigned_nothing_gets_nothing_and_strangers_are_left_out() -> None:
    world = World()
    leader_id, follower_id = completing(world)
    follower = world.sync(follower_id, 1)
    world.sync(leader_id, 1, {leader_id: b"a", "stranger": b"c"})
    assert follower.answer.assignment == b"" and follower.error == ErrorCode.NONE
    stored = world.stored
    assert stored is not None
    assert {member.member_id: member.assignment for member in stored.members} == {leader_id: b"a", follower_id: b""}


def test_a_stable_group_answers_at_once() -> None:
    world = World()
    _, follower_id = world.stable(2)
    assert world.sync(follower_id, 1).answer.assignment == b"part 1"


def test_while_a_rebalance_is_prepared_nobody_syncs() -> None:
    world = World()
    leader_id, _ = world.stable(2)
    world.join(leader_id)
    assert world.sync(leader_id, 1).error == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_wrong_generation_is_illegal() -> None:
    world = World()
    leader_id, _ = completing(world)
    for generation in (-1, 0, 2):
        assert world.sync(leader_id, generation).error == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(("protocol_type", "protocol_name"), [("connect", "range"), ("consumer", "sticky")])
def test_another_protocol_than_the_groups_is_refused(protocol_type: str, protocol_name: str) -> None:
    world = World()
    leader_id, _ = completing(world)
    refused = world.sync(leader_id, 1, protocol_type=protocol_type, protocol_name=protocol_name)
    assert refused.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("protocol_type", "protocol_name"), [(None, "range"), ("consumer", None)])
def test_since_version_5_protocol_type_and_name_must_be_given(
    protocol_type: str | None, protocol_name: str | None
) -> None:
    world = World()
    leader_id, follower_id = completing(world)
    refused = world.sync(leader_id, 1, protocol_type=protocol_type, protocol_name=protocol_name)
    assert refused.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.sync(follower_id, 1, protocol_type=None, protocol_name=None, version=4).is_parked


@pytest.mark.parametrize("version", range(6))
def test_every_version_brings_the_assignment(version: int) -> None:
    world = World()
    leader_id, _ = completing(world)
    assert world.sync(leader_id, 1, {leader_id: b"a"}, version=version).answer.assignment == b"a"


def test_strangers_are_unknown() -> None:
    world = World()
    assert world.sync("somebody", 1).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.sync("somebody", 1, group_id="").error == ErrorCode.INVALID_GROUP_ID
    world.stable(1)
    assert world.sync("somebody", 1).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_nobody_is_in_an_empty_group() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.leave(member_id)
    assert world.sync(member_id, 2).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_sync_in_time_is_out() -> None:
    world = World()
    ids = completing(world, 3, session_ms=1_800_000)
    world.sync(ids[0], 1, {ids[0]: b"a"})
    world.sync(ids[1], 1)
    assert world.group().state == "Stable"
    world.advance_ms(REBALANCE_MS)
    assert set(world.group().members) == {ids[0], ids[1]}
    assert world.group().state == "PreparingRebalance"


def test_a_leader_that_never_syncs_is_out_and_those_who_wait_rejoin() -> None:
    world = World()
    leader_id, follower_id = completing(world, 2, session_ms=1_800_000)
    follower = world.sync(follower_id, 1)
    world.advance_ms(REBALANCE_MS)
    assert follower.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(world.group().members) == [follower_id]
    assert world.group().leader_id == follower_id
    assert world.heartbeat(leader_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_when_nobody_syncs_the_group_is_empty() -> None:
    world = World()
    completing(world, 2, session_ms=1_800_000)
    world.advance_ms(REBALANCE_MS)
    assert world.group().state == "Empty" and world.group().generation == 2
    stored = world.stored
    assert stored is not None and stored.members == [] and stored.protocol is None and stored.leader is None


def test_when_all_have_synced_nothing_expires() -> None:
    world = World()
    world.stable(2, session_ms=1_800_000)
    world.advance_ms(2 * REBALANCE_MS)
    assert world.group().state == "Stable"


def test_a_second_sync_answers_the_first() -> None:
    world = World()
    leader_id, follower_id = completing(world)
    first, second = world.sync(follower_id, 1), world.sync(follower_id, 1)
    assert first.error == ErrorCode.REBALANCE_IN_PROGRESS and second.is_parked
    world.sync(leader_id, 1, {follower_id: b"b"})
    assert second.answer.assignment == b"b" and len(first.answers) == 1


def test_a_leader_that_syncs_twice_is_answered_once_each() -> None:
    world = World()
    leader_id, _ = completing(world)
    world.holds_commits = True
    first = world.sync(leader_id, 1, {leader_id: b"a"})
    second = world.sync(leader_id, 1, {leader_id: b"a"})
    world.commit()
    assert first.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert second.answer.assignment == b"a"
    assert world.group().state == "Stable"


def test_rebalances_are_counted_with_their_duration() -> None:
    world = World()
    world.stable(1)
    meter = world.classic.rebalances.meter
    assert (meter.begun, meter.durations.count) == (1, 1)
    # From the first join to the assignment.
    assert meter.durations.sum == 2 * DELAY_MS / 1000
