"""JoinGroup of classic groups: who gets in, who waits, who is told what."""

from __future__ import annotations

import pytest

from headpond.config.groups import GroupSettings
from headpond.model import ErrorCode
from unit.coordination.classic_world import DELAY_MS, GROUP, REBALANCE_MS, SESSION_MS, World


def test_a_new_member_is_sent_back_with_an_id_and_joins_with_it() -> None:
    world = World()
    asked = world.join(client_id="app")
    assert asked.error == ErrorCode.MEMBER_ID_REQUIRED
    member_id = asked.answer.member_id
    assert member_id.startswith("app-") and len(member_id) == len("app-") + 36
    assert asked.answer.generation_id == -1 and asked.answer.protocol_name is None
    joined = world.join(member_id)
    assert joined.is_parked and world.group().state == "PreparingRebalance"
    world.advance_ms(DELAY_MS)
    answer = joined.answer
    assert (answer.error_code, answer.generation_id, answer.leader, answer.member_id) == (0, 1, member_id, member_id)
    assert (answer.protocol_type, answer.protocol_name, answer.skip_assignment) == ("consumer", "range", False)
    assert [(member.member_id, member.metadata) for member in answer.members] == [(member_id, b"range")]


@pytest.mark.parametrize("version", range(4))
def test_before_version_4_a_new_member_needs_no_id(version: int) -> None:
    world = World()
    joined = world.join(version=version)
    world.advance_ms(DELAY_MS)
    assert joined.error == ErrorCode.NONE
    assert joined.answer.leader == joined.answer.member_id


def test_version_0_has_the_session_timeout_for_a_rebalance_timeout() -> None:
    world = World()
    world.join(version=0, session_ms=8_000, rebalance_ms=-1)
    assert world.group().rebalance_timeout_ms == 8_000


@pytest.mark.parametrize(("version", "name"), [(6, ""), (7, None), (9, None)])
def test_no_protocol_name_is_empty_before_version_7_and_null_since(version: int, name: str | None) -> None:
    assert World().join(version=version).answer.protocol_name == name


def test_only_the_leader_learns_who_the_members_are() -> None:
    world = World()
    first_id, first = world.enter()
    second_id, second = world.enter()
    world.advance_ms(2 * DELAY_MS)
    assert {member.member_id for member in first.answer.members} == {first_id, second_id}
    assert second.answer.members == [] and second.answer.leader == first_id


# --- refusals


@pytest.mark.parametrize("version", [0, 9])
def test_a_client_id_that_leaves_no_room_for_a_member_id_is_refused(version: int) -> None:
    world = World()
    assert world.join(client_id="c" * 32_731, version=version).error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.join(client_id="é" * 16_366, version=version).error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert GROUP not in world.groups
    longest = world.join(client_id="c" * 32_730, version=9).answer
    assert len(longest.member_id) == 32_767


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, 0, -1])
def test_a_session_timeout_out_of_bounds_is_refused(session_ms: int) -> None:
    world = World()
    refused = world.join("somebody", session_ms=session_ms)
    assert (refused.error, refused.answer.member_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, "somebody")
    assert world.groups == {}


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_the_bounds_of_the_session_timeout_are_included(session_ms: int) -> None:
    assert World().join(session_ms=session_ms).error == ErrorCode.MEMBER_ID_REQUIRED


def test_a_group_needs_a_name() -> None:
    assert World().join(group_id="").error == ErrorCode.INVALID_GROUP_ID


def test_a_member_of_a_group_that_does_not_exist_is_unknown_and_makes_none() -> None:
    world = World()
    refused = world.join("somebody")
    assert (refused.error, refused.answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "somebody")
    assert world.groups == {} and world.log == []


def test_an_unknown_member_of_an_existing_group_is_refused() -> None:
    world = World()
    world.stable(1)
    assert world.join("somebody").error == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.group().state == "Stable"


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", ("range",)), ("consumer", ())])
def test_a_first_member_must_name_a_protocol_and_its_type(protocol_type: str, protocols: tuple[str, ...]) -> None:
    refused = World().join(protocol_type=protocol_type, protocols=protocols)
    assert refused.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("protocol_type", "protocols"), [("connect", ("range",)), ("consumer", ("sticky",))])
def test_who_has_no_protocol_in_common_with_all_is_refused(protocol_type: str, protocols: tuple[str, ...]) -> None:
    world = World()
    world.stable(2, protocols=("range", "roundrobin"))
    refused = world.join(protocol_type=protocol_type, protocols=protocols)
    assert refused.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    member_id = next(iter(world.group().members))
    again = world.join(member_id, protocol_type=protocol_type, protocols=protocols)
    assert (again.error, again.answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)


def test_an_empty_group_may_change_its_protocol_type() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.leave(member_id)
    assert world.group().state == "Empty"
    _, joined = world.enter(protocol_type="connect", protocols=("compatible",))
    world.advance_ms(DELAY_MS)
    assert (joined.answer.protocol_type, joined.answer.protocol_name) == ("connect", "compatible")


def test_the_id_of_a_pending_dynamic_member_is_no_static_one() -> None:
    world = World()
    member_id = world.new_id()
    assert world.join(member_id, instance_id="i").error == ErrorCode.UNKNOWN_SERVER_ERROR


# --- the size of a group


def test_a_full_group_takes_nobody_new() -> None:
    world = World(GroupSettings(members_max=2, initial_rebalance_delay_ms=DELAY_MS))
    ids = world.stable(2)
    refused = world.join()
    assert (refused.error, refused.answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert world.group().state == "Stable"
    assert world.join(ids[1]).error == ErrorCode.NONE


def test_pending_ids_beyond_the_size_are_refused_when_they_are_used() -> None:
    world = World(GroupSettings(members_max=2, initial_rebalance_delay_ms=DELAY_MS))
    ids = [world.new_id() for _ in range(3)]
    joined = [world.join(member_id) for member_id in ids]
    assert joined[2].error == ErrorCode.GROUP_MAX_SIZE_REACHED
    world.advance_ms(2 * DELAY_MS)
    assert [reply.error for reply in joined[:2]] == [ErrorCode.NONE, ErrorCode.NONE]
    assert len(world.group().members) == 2


def test_a_group_that_has_become_too_large_keeps_those_who_rejoin_first() -> None:
    world = World()
    ids = world.stable(3)
    world.settings = GroupSettings(members_max=2, initial_rebalance_delay_ms=DELAY_MS)
    world.restart()
    assert world.group().state == "PreparingRebalance"
    assert world.heartbeat(ids[0], 1) == ErrorCode.REBALANCE_IN_PROGRESS
    second, third, first = world.join(ids[1]), world.join(ids[2]), world.join(ids[0])
    assert first.error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [second.error, third.error] == [ErrorCode.NONE, ErrorCode.NONE]  # at once: nobody else is expected
    assert second.answer.generation_id == 2 and set(world.group().members) == {ids[1], ids[2]}


# --- the initial delay


def test_a_new_group_waits_for_more_members_and_longer_when_they_come() -> None:
    world = World()
    _, first = world.enter()
    world.advance_ms(DELAY_MS - 1)
    _, second = world.enter()
    world.advance_ms(1)
    assert first.is_parked
    world.advance_ms(DELAY_MS)
    assert first.answer.generation_id == second.answer.generation_id == 1


def test_the_initial_delay_ends_with_the_rebalance_timeout() -> None:
    world = World()
    _, first = world.enter(rebalance_ms=7_000)
    world.advance_ms(2_900)
    world.enter(rebalance_ms=7_000)
    world.advance_ms(3_000)
    world.enter(rebalance_ms=7_000)
    world.advance_ms(1_000)
    assert first.is_parked
    world.advance_ms(200)  # 3,000 + 3,000 + the 1,000 that remained
    assert first.error == ErrorCode.NONE


def test_without_an_initial_delay_the_first_member_is_answered_at_once() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=0))
    _, joined = world.enter()
    world.advance_ms(0)
    assert joined.error == ErrorCode.NONE


def test_a_group_that_was_empty_waits_as_a_new_one_does() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.leave(member_id)
    _, joined = world.enter()
    world.advance_ms(DELAY_MS - 1)
    assert joined.is_parked
    world.advance_ms(1)
    assert joined.answer.generation_id == 3  # one for the empty group


# --- members who come again


def test_a_new_member_makes_everybody_rejoin() -> None:
    world = World()
    first_id, second_id = world.stable(2)
    _, third = world.enter()
    assert world.group().state == "PreparingRebalance"
    assert world.heartbeat(first_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    first = world.join(first_id)
    assert first.is_parked and third.is_parked
    second = world.join(second_id)
    assert [reply.answer.generation_id for reply in (first, second, third)] == [2, 2, 2]
    assert first.answer.leader == first_id and len(first.answer.members) == 3


def test_who_does_not_rejoin_in_time_is_out_and_the_leader_is_replaced() -> None:
    world = World()
    leader_id, second_id = world.stable(2, session_ms=1_000_000)
    second = world.join(second_id, protocols=("range", "sticky"), session_ms=1_000_000)
    world.advance_ms(REBALANCE_MS - 1)
    assert second.is_parked
    world.advance_ms(1)
    assert (second.answer.leader, second.answer.generation_id) == (second_id, 2)
    assert [member.member_id for member in second.answer.members] == [second_id]
    assert world.heartbeat(leader_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_longest_rebalance_timeout_of_the_members_counts() -> None:
    world = World()
    _, patient = world.enter(rebalance_ms=90_000)
    ids = [patient, world.enter(rebalance_ms=20_000)[1]]
    world.advance_ms(2 * DELAY_MS)
    _, third = world.enter(rebalance_ms=10_000, session_ms=1_000_000)
    world.heartbeat(ids[0].answer.member_id, 1)
    assert world.group().rebalance_timeout_ms == 90_000
    assert third.is_parked


def test_a_follower_that_joins_a_stable_group_unchanged_is_told_what_it_should_know() -> None:
    world = World()
    leader_id, follower_id = world.stable(2)
    again = world.join(follower_id).answer
    assert (again.generation_id, again.leader, again.members, again.error_code) == (1, leader_id, [], 0)
    assert world.group().state == "Stable"


def test_a_leader_that_joins_a_stable_group_starts_a_rebalance() -> None:
    world = World()
    leader_id, _ = world.stable(2)
    assert world.join(leader_id).is_parked
    assert world.group().state == "PreparingRebalance"


def test_a_follower_with_other_metadata_starts_a_rebalance() -> None:
    world = World()
    _, follower_id = world.stable(2)
    assert world.join(follower_id, protocols=(("range", b"other topics"),)).is_parked
    assert world.group().state == "PreparingRebalance"


def test_the_order_of_protocols_is_part_of_the_metadata() -> None:
    world = World()
    _, follower_id = world.stable(2, protocols=("range", "sticky"))
    assert world.join(follower_id, protocols=("sticky", "range")).is_parked


def test_a_lost_answer_is_given_again_in_the_sync_phase() -> None:
    world = World()
    leader_id, joined = world.enter()
    follower_id, _ = world.enter()
    world.advance_ms(2 * DELAY_MS)
    again = world.join(leader_id).answer
    assert again == joined.answer and len(again.members) == 2
    assert world.join(follower_id).answer.members == []
    assert world.group().state == "CompletingRebalance"


def test_other_metadata_in_the_sync_phase_starts_a_rebalance_and_frees_those_who_sync() -> None:
    world = World()
    leader_id, _ = world.enter()
    follower_id, _ = world.enter()
    world.advance_ms(2 * DELAY_MS)
    synced = world.sync(follower_id, 1)
    assert synced.is_parked
    world.join(leader_id, protocols=(("range", b"other"),))
    assert synced.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.group().state == "PreparingRebalance"


def test_a_second_join_of_a_waiting_member_answers_the_first() -> None:
    world = World()
    member_id, first = world.enter()
    second = world.join(member_id)
    assert first.error == ErrorCode.REBALANCE_IN_PROGRESS and second.is_parked
    world.advance_ms(2 * DELAY_MS)
    assert second.error == ErrorCode.NONE and len(first.answers) == 1


# --- pending members


def test_a_pending_member_holds_a_rebalance_up_until_its_session_ends() -> None:
    world = World()
    ids = world.stable(2, session_ms=30_000)
    world.new_id(session_ms=6_000)
    replies = [world.join(member_id) for member_id in ids]  # the leader's join starts the rebalance
    assert all(reply.is_parked for reply in replies)
    world.advance_ms(6_000)
    assert [reply.answer.generation_id for reply in replies] == [2, 2]


def test_a_pending_id_is_unknown_after_its_session() -> None:
    world = World()
    member_id = world.new_id()
    world.advance_ms(SESSION_MS)
    assert world.join(member_id).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_pending_members_can_leave() -> None:
    world = World()
    ids = world.stable(2)
    pending_id = world.new_id()
    replies = [world.join(member_id) for member_id in ids]
    assert world.leave(pending_id).members[0].error_code == 0
    assert [reply.error for reply in replies] == [ErrorCode.NONE, ErrorCode.NONE]


def test_pending_members_may_neither_heartbeat_nor_sync() -> None:
    world = World()
    world.stable(1)
    member_id = world.new_id()
    assert world.heartbeat(member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.sync(member_id, 1).error == ErrorCode.UNKNOWN_MEMBER_ID


# --- first of all


def test_a_group_is_written_down_when_it_is_first_heard_of() -> None:
    world = World()
    world.new_id()
    assert len(world.log) == 1
    stored = world.stored
    assert stored is not None
    assert (stored.generation, stored.protocol_type, stored.protocol, stored.leader, stored.members) == (
        (0, "", None, None, [])
    )
    assert stored.current_state_timestamp == world.clock.now_ms()


@pytest.mark.parametrize("version", [3, 9])
def test_a_group_that_cannot_be_written_down_is_not_there(version: int) -> None:
    world = World()
    world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    joined = world.join(version=version)
    assert joined.error == (ErrorCode.COORDINATOR_NOT_AVAILABLE if version < 4 else ErrorCode.MEMBER_ID_REQUIRED)
    assert world.groups == {}
    world.advance_ms(REBALANCE_MS)
    assert len(joined.answers) == 1


def test_reasons_are_taken_and_change_nothing() -> None:
    world = World()
    member_id = world.new_id(reason="hello\nthere")
    joined = world.join(member_id, reason="x" * 1_000)
    world.advance_ms(DELAY_MS)
    assert joined.error == ErrorCode.NONE


def test_a_join_that_waits_for_ever_is_ended_after_five_minutes() -> None:
    world = World()
    (member_id,) = world.stable(1, session_ms=1_800_000, rebalance_ms=1_800_000)
    _, joined = world.enter(session_ms=1_800_000, rebalance_ms=1_800_000)
    world.advance_ms(299_999)
    assert joined.is_parked
    world.advance_ms(1)
    assert (joined.error, joined.answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    assert list(world.group(GROUP).members) == [member_id]
