"""Classic groups and their log: what is written, what a new coordinator makes of it, how one that goes says so."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.coordination.groups.classic import ClassicGroup
from headpond.coordination.groups.classic.stored import group_record
from headpond.coordination.records import CoordinatorRecord
from headpond.model import ErrorCode
from headpond.protocol.codec import encoder
from headpond.protocol.schema.classic_group_records import GroupMetadataKey, GroupMetadataValue
from unit.coordination.classic_world import CODEC, DELAY_MS, GROUP, REBALANCE_MS, SESSION_MS, World


def test_a_complete_rebalance_is_one_record() -> None:
    world = World()
    ids = world.stable(1, instances=("one",))
    assert len(world.log) == 2  # the group as such, and its first generation
    stored = world.stored
    assert stored is not None
    assert (stored.generation, stored.protocol_type, stored.protocol, stored.leader) == (1, "consumer", "range", ids[0])
    assert [
        (member.member_id, member.group_instance_id, member.client_id, member.client_host) for member in stored.members
    ] == [(ids[0], None, "app", "/192.0.2.1"), (ids[1], "one", "app", "/192.0.2.1")]
    assert {(member.session_timeout, member.rebalance_timeout) for member in stored.members} == {
        (SESSION_MS, REBALANCE_MS)
    }
    assert [(member.subscription, member.assignment) for member in stored.members] == [
        (b"range", b"part 0"),
        (b"range", b"part 1"),
    ]


def test_a_new_coordinator_knows_the_last_complete_generation() -> None:
    world = World()
    ids = world.stable(1, instances=("one",))
    before = group_record(world.group())
    world.restart()
    group = world.group()
    assert (group.state, group.generation, group.leader_id) == ("Stable", 1, ids[0])
    assert world.heartbeat(ids[0], 1) == ErrorCode.NONE
    assert world.heartbeat(ids[1], 1, "one") == ErrorCode.NONE
    assert world.sync(ids[1], 1, instance_id="one").answer.assignment == b"part 1"
    restored, expected = group_record(group).value, before.value
    assert isinstance(restored, GroupMetadataValue) and isinstance(expected, GroupMetadataValue)
    restored.current_state_timestamp = expected.current_state_timestamp
    assert restored == expected


def test_sessions_start_anew_with_a_new_coordinator() -> None:
    world = World()
    ids = world.stable(2)
    world.advance_ms(SESSION_MS - 1)
    world.restart()
    world.advance_ms(SESSION_MS - 1)
    assert list(world.group().members) == ids
    world.advance_ms(1)
    assert world.group().state == "Empty"


def test_a_rebalance_that_was_under_way_is_begun_again_by_the_members() -> None:
    world = World()
    first_id, second_id = world.stable(2)
    _, third = world.enter()
    first = world.join(first_id)
    world.restart()
    assert first.error == third.error == ErrorCode.NOT_COORDINATOR
    assert (first.answer.member_id, world.group().state) == (first_id, "Stable")
    again = world.join(first_id)  # the leader
    world.join(second_id)
    assert again.answer.generation_id == 2


def test_those_who_wait_for_an_assignment_are_told_when_the_coordinator_moves() -> None:
    world = World()
    leader_id, _ = world.enter()
    follower_id, _ = world.enter()
    world.advance_ms(2 * DELAY_MS)
    world.holds_commits = True
    replies = [world.sync(follower_id, 1), world.sync(leader_id, 1, {leader_id: b"a"})]
    world.restart()  # on_failed comes after close
    assert [reply.error for reply in replies] == [ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR]


def test_a_static_member_whose_new_id_is_on_its_way_is_told_when_the_coordinator_moves() -> None:
    world = World()
    world.stable(1, instances=("one",))
    world.holds_commits = True
    back = world.join(instance_id="one")
    world.restart()
    assert back.error == ErrorCode.NOT_COORDINATOR


def test_a_commit_after_the_coordinator_moved_says_nothing() -> None:
    world = World()
    leader_id, _ = world.enter()
    world.advance_ms(DELAY_MS)
    world.holds_commits = True
    synced = world.sync(leader_id, 1, {})
    world.classic.close()
    world.commit()
    assert synced.error == ErrorCode.NOT_COORDINATOR


def test_an_empty_group_is_remembered_with_its_generation() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.leave(member_id)
    since_ms = world.group().since_ms
    world.advance_ms(5)
    world.restart()
    group = world.group()
    assert (group.state, group.generation, group.protocol_type) == ("Empty", 2, "consumer")
    assert group.since_ms == since_ms


def test_a_tombstone_ends_a_group() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.leave(member_id)
    world.new_id()
    group = world.group()
    for record in group.tombstones():
        assert CODEC.encode(record)[1] is None
        world.log.append(CODEC.encode(record))
        world.replay(record)
    assert GROUP not in world.groups and group.state == "Dead"
    assert world.clock.next_timer_s() is None
    world.restart()
    assert world.groups == {}


def test_a_group_that_becomes_a_consumer_group_lets_those_who_wait_rejoin() -> None:
    world = World()
    leader_id, follower_id = world.stable(2)
    joined = world.join(leader_id)
    for record in world.group().tombstones():
        world.replay(record)
    assert joined.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.clock.next_timer_s() is None
    assert world.heartbeat(follower_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_consumer_group_becomes_a_classic_one_by_a_record_without_a_leader_and_is_rebalanced() -> None:
    source = World()
    leader_id, follower_id = source.stable(2)
    source.group().leader_id = None
    world = World()
    world.replay(group_record(source.group()))
    assert world.heartbeat(leader_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    world.advance_ms(SESSION_MS)
    assert follower_id not in world.group().members


def test_tombstones_of_what_is_not_there_are_nothing() -> None:
    world = World()
    world.replay(CoordinatorRecord(GroupMetadataKey(group="unheard of"), None))
    assert world.groups == {}


@pytest.mark.parametrize("version", range(4))
def test_records_of_older_versions_are_read(version: int) -> None:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=7,
        protocol="range",
        leader="a",
        current_state_timestamp=5,
        members=[
            GroupMetadataValue.MemberMetadata(
                member_id="a",
                client_id="c",
                client_host="/h",
                rebalance_timeout=9,
                session_timeout=10,
                subscription=b"s",
            )
        ],
    )
    key, _ = CODEC.encode(CoordinatorRecord(GroupMetadataKey(group=GROUP), value))
    data = version.to_bytes(2, "big") + encoder(GroupMetadataValue, version)(value)
    world = World()
    world.log.append((key, data))
    world.restart()
    group = world.group()
    assert (group.state, group.generation, group.leader_id) == ("Stable", 7, "a")
    assert group.since_ms == (5 if version >= 2 else None)
    assert group.members["a"].rebalance_timeout_ms == (9 if version >= 1 else 10)


def test_a_record_whose_leader_is_not_a_member_gets_one() -> None:
    world = World()
    member = GroupMetadataValue.MemberMetadata(member_id="a", session_timeout=6_000)
    value = GroupMetadataValue(protocol_type="consumer", protocol="range", leader="gone", members=[member])
    world.log.append(CODEC.encode(CoordinatorRecord(GroupMetadataKey(group=GROUP), value)))
    world.restart()
    assert world.group().leader_id == "a"


def test_offsets_of_a_group_that_nobody_joined_make_a_simple_group() -> None:
    world = World()
    group = world.classic.simple("loner")
    assert world.classic.simple("loner") is group
    assert (group.kind, group.state, group.protocol_type, world.log) == ("classic", "Empty", "", [])
    world.new_id(group_id="loner")
    assert world.log == []  # not new: written when something is to be said


class EmptyConsumerGroup:
    """Stands for a KIP-848 group that everybody has left."""

    kind, state, protocol_type, is_empty = "consumer", "Empty", "consumer", True
    group_id = GROUP

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group="stands for its tombstone"), None)]


def test_an_empty_consumer_group_gives_way_to_a_classic_one() -> None:
    world = World()
    world.groups[GROUP] = EmptyConsumerGroup()  # type: ignore[assignment]
    member_id = world.new_id()
    assert isinstance(world.groups[GROUP], ClassicGroup)
    assert [value is None for _, value in world.log] == [True, False]
    joined = world.join(member_id)
    world.advance_ms(DELAY_MS)
    assert joined.error == ErrorCode.NONE


def test_an_empty_consumer_group_stays_when_that_cannot_be_written_or_the_member_is_unknown() -> None:
    world = World()
    consumer: Any = EmptyConsumerGroup()
    world.groups[GROUP] = consumer
    assert world.join("somebody").error == ErrorCode.UNKNOWN_MEMBER_ID
    world.append_error = ErrorCode.NOT_COORDINATOR
    world.join()
    assert world.groups[GROUP] is consumer


def test_a_consumer_group_with_members_takes_no_classic_ones_here() -> None:
    world = World()
    consumer = EmptyConsumerGroup()
    consumer.is_empty = False
    world.groups[GROUP] = consumer  # type: ignore[assignment]
    assert world.join().error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.sync("a", 1).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("a", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.leave("a").members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.classic.describe(GROUP, version=6).error_message == f"Group {GROUP} is not a classic group."
