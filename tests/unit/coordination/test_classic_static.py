"""Static members (KIP-345): an instance keeps its place over restarts, and there is one of each."""

from __future__ import annotations

import pytest

from headpond.model import ErrorCode
from unit.coordination.classic_world import DELAY_MS, REBALANCE_MS, SESSION_MS, World
from unit.coordination.consumer_world import subscription


def test_a_static_member_needs_no_second_request_and_is_named_after_its_instance() -> None:
    world = World()
    joined = world.join(instance_id="one")
    world.advance_ms(DELAY_MS)
    assert joined.answer.member_id.startswith("one-")
    assert [member.group_instance_id for member in joined.answer.members] == ["one"]


def test_a_follower_that_is_back_keeps_generation_and_assignment_without_a_rebalance() -> None:
    world = World()
    leader_id, old_id = world.stable(1, instances=("one",))
    back = world.join(instance_id="one").answer
    assert back.error_code == 0 and back.member_id != old_id
    assert (back.generation_id, back.leader, back.members, back.skip_assignment) == (1, leader_id, [], False)
    assert world.group().state == "Stable"
    assert world.sync(back.member_id, 1, instance_id="one").answer.assignment == b"part 1"
    assert world.heartbeat(leader_id, 1) == ErrorCode.NONE


def test_a_leader_that_is_back_leads_but_need_not_assign() -> None:
    world = World()
    ids = world.stable(0, instances=("one", "two"))
    back = world.join(instance_id="one", version=9).answer
    assert back.skip_assignment and back.leader == back.member_id and len(back.members) == 2
    assert ids[0] not in {member.member_id for member in back.members}
    assert world.group().state == "Stable"


@pytest.mark.parametrize("version", range(5, 9))
def test_before_version_9_a_leader_that_is_back_must_not_learn_that_it_leads(version: int) -> None:
    world = World()
    old_id, _ = world.stable(0, instances=("one", "two"))
    back = world.join(instance_id="one", version=version).answer
    assert (back.leader, back.members) == (old_id, [])
    assert world.group().leader_id == back.member_id


def test_the_new_id_is_written_before_anybody_hears_of_it() -> None:
    world = World()
    world.stable(1, instances=("one",))
    world.holds_commits = True
    back = world.join(instance_id="one")
    assert back.is_parked
    stored = world.stored
    assert stored is not None
    assert [member.group_instance_id for member in stored.members] == [None, "one"]
    assert [member.assignment for member in stored.members] == [b"part 0", b"part 1"]
    world.commit()
    assert back.answer.member_id == stored.members[1].member_id


def test_a_new_id_that_cannot_be_written_gives_the_place_back() -> None:
    world = World()
    _, old_id = world.stable(1, instances=("one",))
    world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    refused = world.join(instance_id="one", session_ms=7_000)
    assert (refused.error, refused.answer.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert world.heartbeat(old_id, 1, "one") == ErrorCode.NONE
    assert world.group().members[old_id].session_timeout_ms == SESSION_MS
    assert world.group().state == "Stable"


def test_one_that_is_back_while_a_rebalance_begins_takes_part_in_it() -> None:
    world = World()
    leader_id, _ = world.stable(1, instances=("one",))
    world.holds_commits = True
    back = world.join(instance_id="one")
    leader = world.join(leader_id)
    world.commit()
    assert leader.answer.generation_id == back.answer.generation_id == 2
    assert {member.member_id for member in leader.answer.members} == {leader_id, back.answer.member_id}


def test_the_old_id_is_fenced_everywhere() -> None:
    world = World()
    _, old_id = world.stable(1, instances=("one",))
    world.join(instance_id="one")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(old_id, 1, "one") == fenced
    assert world.sync(old_id, 1, instance_id="one").error == fenced
    assert world.join(old_id, instance_id="one").error == fenced
    assert world.leave((old_id, "one")).members[0].error_code == fenced
    # Who does not say that it is static is only unknown.
    assert world.heartbeat(old_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unknown_instance_is_an_unknown_member() -> None:
    world = World()
    member_id, _ = world.stable(1, instances=("one",))
    assert world.heartbeat(member_id, 1, "two") == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join("somebody", instance_id="two").error == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_waiting_join_of_the_old_id_is_fenced() -> None:
    world = World()
    first = world.join(instance_id="one")
    second = world.join(instance_id="one")
    assert first.error == ErrorCode.FENCED_INSTANCE_ID and first.answer.member_id.startswith("one-")
    world.advance_ms(2 * DELAY_MS)
    assert second.error == ErrorCode.NONE and len(world.group().members) == 1


def test_the_waiting_sync_of_the_old_id_is_fenced_and_a_rebalance_begins() -> None:
    world = World()
    world.enter()
    static = world.join(instance_id="one")
    world.advance_ms(2 * DELAY_MS)
    synced = world.sync(static.answer.member_id, 1, instance_id="one")
    back = world.join(instance_id="one")
    assert synced.error == ErrorCode.FENCED_INSTANCE_ID
    assert back.is_parked and world.group().state == "PreparingRebalance"


@pytest.mark.parametrize("instance_id", ["one", "two"])
@pytest.mark.parametrize(
    ("topics", "state"),
    [
        (["a", "b"], "Stable"),
        (["b", "a"], "Stable"),
        (["a"], "PreparingRebalance"),
        (["a", "b", "c"], "PreparingRebalance"),
    ],
)
def test_one_that_is_back_and_reads_other_topics_starts_a_rebalance(
    instance_id: str, topics: list[str], state: str
) -> None:
    """Leader and follower alike; what it owns is no matter."""
    world = World()
    owned = subscription(["a", "b"], {"a": [0]})
    world.stable(0, instances=("one", "two"), protocols=(("range", owned),))
    world.join(instance_id=instance_id, protocols=(("range", subscription(topics, {})),))
    assert world.group().state == state


def test_one_that_is_back_with_another_preference_may_start_a_rebalance() -> None:
    world = World()
    world.stable(0, instances=("one",), protocols=("range", "sticky"))
    back = world.join(instance_id="one", protocols=("sticky", "range"))
    assert back.answer.protocol_name == "sticky" and back.answer.generation_id == 2  # alone: it is complete at once


def test_one_that_is_back_with_other_metadata_for_the_same_protocol_is_written_down_with_it() -> None:
    world = World()
    world.stable(1, instances=("one",))
    world.join(instance_id="one", protocols=(("range", b"other"),))
    stored = world.stored
    assert stored is not None
    assert world.group().state == "Stable" and stored.members[1].subscription == b"other"


def test_one_that_does_not_rejoin_stays_until_its_session_ends() -> None:
    world = World()
    leader_id, static_id = world.stable(1, instances=("one",), session_ms=45_000, rebalance_ms=20_000)
    leader = world.join(leader_id, session_ms=45_000, rebalance_ms=20_000)
    world.advance_ms(20_000)
    assert leader.answer.generation_id == 2 and len(leader.answer.members) == 2
    assert static_id in world.group().members
    # It counts as one that has to sync: it is out when that takes too long.
    world.sync(leader_id, 2, {leader_id: b"all"})
    world.heartbeat(leader_id, 2)
    world.advance_ms(20_000)
    assert static_id not in world.group().members


def test_a_group_whose_static_members_are_all_silent_waits_for_the_end_of_their_sessions() -> None:
    world = World()
    ids = world.stable(1, instances=("one",), session_ms=30_000, rebalance_ms=10_000)
    world.leave(ids[0])
    world.advance_ms(10_000)
    assert world.group().state == "PreparingRebalance"
    world.advance_ms(20_000)
    assert world.group().state == "Empty" and world.group().members == {}


@pytest.mark.parametrize("rebalance_ms", [-1, 0, 5])
def test_silly_rebalance_timeouts_do_not_make_a_busy_loop(rebalance_ms: int) -> None:
    world = World()
    ids = world.stable(1, instances=("one",), session_ms=1_800_000)
    world.group().members[ids[1]].rebalance_timeout_ms = rebalance_ms
    world.leave(ids[0])
    world.advance_ms(10_000)  # would never come back
    assert world.group().state == "PreparingRebalance"


def test_an_instance_is_put_out_by_its_name_alone() -> None:
    world = World()
    leader_id, _ = world.stable(1, instances=("one",))
    response = world.leave(("", "one"), ("", "two"), ("", None))
    assert [(row.group_instance_id, row.error_code) for row in response.members] == [
        ("one", 0),
        ("two", ErrorCode.UNKNOWN_MEMBER_ID),
        (None, ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert list(world.group().members) == [leader_id]
    assert world.group().state == "PreparingRebalance"


def test_the_session_of_the_new_id_runs_and_that_of_the_old_one_does_not() -> None:
    world = World()
    leader_id, _ = world.stable(1, instances=("one",), session_ms=20_000)
    world.advance_ms(15_000)
    world.heartbeat(leader_id, 1)
    back_id = world.join(instance_id="one", session_ms=20_000).answer.member_id
    world.advance_ms(6_000)
    assert back_id in world.group().members and world.group().state == "Stable"
    world.heartbeat(leader_id, 1)
    world.advance_ms(14_000)
    assert back_id not in world.group().members


def test_a_static_member_that_is_back_after_the_coordinator_was_restarted_keeps_its_assignment() -> None:
    world = World()
    world.stable(1, instances=("one",))
    world.restart()
    back = world.join(instance_id="one").answer
    assert back.generation_id == 1 and world.group().state == "Stable"
    assert world.sync(back.member_id, 1, instance_id="one").answer.assignment == b"part 1"
    world.advance_ms(REBALANCE_MS)
