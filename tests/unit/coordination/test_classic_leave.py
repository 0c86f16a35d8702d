"""LeaveGroup and DescribeGroups of classic groups."""

from __future__ import annotations

import pytest

from headpond.model import ErrorCode
from unit.coordination.classic_world import DELAY_MS, GROUP, World


def test_who_leaves_is_out_and_the_others_rejoin() -> None:
    world = World()
    first_id, second_id = world.stable(2)
    response = world.leave(second_id)
    assert [(row.member_id, row.error_code) for row in response.members] == [(second_id, 0)]
    assert world.group().state == "PreparingRebalance"
    assert world.join(first_id).answer.generation_id == 2
    assert world.heartbeat(second_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_several_leave_with_one_request_and_one_rebalance() -> None:
    world = World()
    first_id, second_id, third_id = world.stable(3)
    response = world.leave(second_id, "somebody", third_id)
    assert [row.error_code for row in response.members] == [0, ErrorCode.UNKNOWN_MEMBER_ID, 0]
    assert response.error_code == 0
    assert world.join(first_id).answer.generation_id == 2


def test_the_last_to_leave_leaves_an_empty_group() -> None:
    world = World()
    ids = world.stable(2)
    world.leave(*ids)
    assert world.group().state == "Empty" and world.group().generation == 2
    stored = world.stored
    assert stored is not None and stored.members == [] and stored.generation == 2


def test_who_leaves_while_the_others_wait_lets_them_go_on() -> None:
    world = World()
    ids = world.stable(3)
    first, second = world.join(ids[0]), world.join(ids[1])
    assert first.is_parked
    world.leave(ids[2])
    assert first.answer.generation_id == second.answer.generation_id == 2


def test_a_join_that_waits_is_answered_when_its_member_leaves() -> None:
    world = World()
    member_id, joined = world.enter()
    world.leave(member_id)
    assert (joined.error, joined.answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_a_sync_that_waits_is_answered_when_its_member_leaves() -> None:
    world = World()
    leader_id, _ = world.enter()
    follower_id, _ = world.enter()
    world.advance_ms(2 * DELAY_MS)
    synced = world.sync(follower_id, 1)
    world.leave(follower_id)
    assert synced.error == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(world.group().members) == [leader_id]


def test_leaving_during_the_initial_delay_does_not_shorten_it() -> None:
    world = World()
    _, first = world.enter()
    second_id, _ = world.enter()
    world.leave(second_id)
    assert first.is_parked


@pytest.mark.parametrize("version", range(3))
def test_before_version_3_one_member_leaves_and_the_error_is_at_the_top(version: int) -> None:
    world = World()
    (member_id,) = world.stable(1)
    refused = world.leave("somebody", version=version)
    assert (refused.error_code, refused.members) == (ErrorCode.UNKNOWN_MEMBER_ID, [])
    assert world.leave(member_id, version=version).error_code == 0
    assert world.group().state == "Empty"
    assert world.leave("somebody", version=version, group_id="unheard of").error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(3, 6))
def test_in_a_group_that_does_not_exist_each_member_is_unknown(version: int) -> None:
    response = World().leave("a", ("", "i"), version=version)
    assert response.error_code == 0
    assert [(row.member_id, row.group_instance_id, row.error_code) for row in response.members] == [
        ("a", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", "i", ErrorCode.UNKNOWN_MEMBER_ID),
    ]


def test_a_group_needs_a_name() -> None:
    assert World().leave("a", group_id="").error_code == ErrorCode.INVALID_GROUP_ID


def test_nobody_leaves_with_an_empty_list() -> None:
    world = World()
    world.stable(1)
    assert world.leave().members == []
    assert world.group().state == "Stable"


# --- DescribeGroups


def test_a_stable_group_shows_its_members_metadata_and_assignments() -> None:
    world = World()
    leader_id, static_id = world.stable(1, instances=("one",))
    row = world.classic.describe(GROUP, version=6)
    assert (row.error_code, row.group_state, row.protocol_type, row.protocol_data) == (0, "Stable", "consumer", "range")
    assert [(member.member_id, member.group_instance_id, member.client_id) for member in row.members] == [
        (leader_id, None, "app"),
        (static_id, "one", "app"),
    ]
    assert [(member.client_host, member.member_metadata, member.member_assignment) for member in row.members] == [
        ("/192.0.2.1", b"range", b"part 0"),
        ("/192.0.2.1", b"range", b"part 1"),
    ]


def test_a_group_in_a_rebalance_shows_no_metadata() -> None:
    world = World()
    leader_id, _ = world.stable(2)
    world.join(leader_id)
    row = world.classic.describe(GROUP, version=6)
    assert (row.group_state, row.protocol_data) == ("PreparingRebalance", "")
    assert [member.member_metadata for member in row.members] == [b"", b""]
    assert [member.member_assignment for member in row.members] == [b"part 0", b"part 1"]


def test_an_empty_group_shows_its_protocol_type() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.leave(member_id)
    row = world.classic.describe(GROUP, version=6)
    assert (row.group_state, row.protocol_type, row.protocol_data, row.members) == ("Empty", "consumer", "", [])


@pytest.mark.parametrize("version", range(6))
def test_before_version_6_a_group_that_does_not_exist_is_dead(version: int) -> None:
    row = World().classic.describe("unheard of", version=version)
    assert (row.error_code, row.error_message, row.group_state) == (0, None, "Dead")


def test_since_version_6_it_is_not_found() -> None:
    row = World().classic.describe("unheard of", version=6)
    assert (row.error_code, row.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert row.error_message == "Group unheard of not found."
