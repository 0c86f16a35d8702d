"""A partition has one owner while a group changes between the protocols, whatever its members have not heard of yet."""

from __future__ import annotations

import pytest

from headpond.coordination.groups.consumer.member import MemberState
from headpond.coordination.groups.group import CommittedPartition
from headpond.model import BrokerError, ErrorCode
from unit.coordination.consumer_world import GROUP, Held, World, no_wait, read_assignment
from unit.coordination.conversion_clients import ClassicClient
from unit.coordination.conversion_world import ConversionWorld

ALL: Held = {"orders": [0, 1, 2, 3]}


def newcomer(world: World) -> str:
    """A classic member that has been given its id, and has not joined with it."""
    return world.classic_join("", "orders")[0].member_id


def may_commit(world: World, member_id: str, generation: int, partition: int) -> bool:
    try:
        world.groups[GROUP].check_commit(
            member_id=member_id,
            group_instance_id=None,
            generation_or_epoch=generation,
            is_transactional=False,
            request_version=9,
            partitions=[CommittedPartition("orders", partition)],
        )
    except BrokerError:
        return False
    return True


# --- down and up again


@pytest.mark.parametrize("restarts", [False, True])
def test_a_member_that_has_missed_that_the_group_went_down_and_up_again_is_put_out(restarts: bool) -> None:
    world = World(orders=4)
    old = world.classic_member("orders", given=ALL)
    world.join("new", "orders")  # half is to become its own
    world.leave("new")
    if restarts:
        world.restart()
    assert world.held(world.join("new", "orders")) == {"orders": [2, 3]}
    assert not may_commit(world, old, 1, 2)
    (refused,) = world.classic_join(old, "orders", owned=ALL)
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (joined,) = world.classic_join(newcomer(world), "orders")
    given = read_assignment(world.classic_sync(joined.member_id, joined.generation_id).assignment)[1]
    assert given == {"orders": [0, 1]}


def test_what_a_member_is_about_to_give_up_stays_its_own_when_the_group_goes_down_and_up_again() -> None:
    world = World(orders=4)
    old = world.classic_member("orders", given=ALL)
    world.join("new", "orders")
    world.classic_join(old, "orders", owned=ALL)
    assert world.group().members[old].state is MemberState.UNREVOKED_PARTITIONS
    world.leave("new")
    assert world.held(world.join("new", "orders")) == {}
    assert world.owns(old) == ALL


# --- up in the middle of a rebalance


def test_cooperative_members_own_what_they_said_when_the_group_goes_up_after_an_interrupted_rebalance() -> None:
    world = World(orders=4)
    old = world.classic_member("orders", given=ALL)
    second, third = newcomer(world), newcomer(world)
    world.classic_join(second, "orders")
    world.classic_join(old, "orders", owned=ALL)
    world.classic_join(third, "orders")
    world.classic_leave((third, None))
    assert world.held(world.join("new", "orders")) == {}
    assert world.owns(old) == ALL


def test_a_member_that_has_not_asked_for_its_assignment_yet_owns_what_it_said() -> None:
    world = World(orders=4)
    leader = world.classic_member("orders", given=ALL)
    second = newcomer(world)
    world.classic_join(second, "orders")
    world.classic_join(leader, "orders", owned={"orders": [0, 1]})
    world.classic_sync(leader, 2, given={leader: {"orders": [0, 1]}, second: {"orders": [2, 3]}})
    world.classic_sync(second, 2)
    third = newcomer(world)
    world.classic_join(third, "orders")
    world.classic_join(leader, "orders", owned={"orders": [0, 1]})
    world.classic_join(second, "orders", owned={"orders": [2, 3]})
    world.classic_sync(leader, 3, given={leader: {"orders": [0, 1]}, second: {"orders": [2]}})
    assert world.held(world.join("new", "orders")) == {}
    assert may_commit(world, second, 3, 3)
    assert world.owns(second) == {"orders": [2, 3]}


def test_what_a_member_was_given_is_its_own_whoever_says_to_own_it() -> None:
    world = World(orders=4)
    leader = world.classic_member("orders", given=ALL)
    second = newcomer(world)
    world.classic_join(second, "orders")
    world.classic_join(leader, "orders", owned=ALL)
    world.classic_sync(leader, 2, given={leader: {"orders": [0, 1]}, second: {"orders": [2, 3]}})
    world.join("new", "orders")
    assert (world.owns(leader), world.owns(second)) == ({"orders": [0, 1]}, {"orders": [2, 3]})


def test_a_member_that_says_to_own_partitions_that_do_not_exist_does_not_get_them() -> None:
    world = World(orders=4)
    leader = world.classic_member("orders", given=ALL)
    world.classic_join(leader, "orders", owned={"orders": [0, 4, -1], "nothing": [0]})
    world.join("new", "orders")
    assert world.owns(leader) == ALL


# --- members that have missed something


def mixed(world: World) -> tuple[str, int]:
    """``new`` holds the first half, a classic member the other one; its id and its generation."""
    world.join("new", "orders")
    old = newcomer(world)
    world.classic_join(old, "orders")
    world.beat("new", 2, owned=ALL)
    world.beat("new", 2, owned={"orders": [0, 1]})
    (joined,) = world.classic_join(old, "orders")
    assert read_assignment(world.classic_sync(old, joined.generation_id).assignment)[1] == {"orders": [2, 3]}
    return old, joined.generation_id


def test_a_classic_member_that_owns_what_another_has_got_is_put_out_and_comes_back_with_nothing() -> None:
    world = World(orders=4)
    old, generation = mixed(world)
    (refused,) = world.classic_join(old, "orders", owned=ALL)
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert not may_commit(world, old, generation, 0)
    (joined,) = world.classic_join(newcomer(world), "orders")
    assert joined.error_code == ErrorCode.NONE


def test_a_classic_member_that_can_not_be_put_out_now_stays() -> None:
    world = World(orders=4)
    old, _ = mixed(world)
    world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(BrokerError):
        world.classic_join(old, "orders", owned=ALL)
    assert old in world.group().members


def test_a_classic_member_gives_up_what_it_owns_without_having_got_it_before_another_gets_it() -> None:
    world = World(no_wait(consumer_migration_policy="upgrade"), orders=4)
    old, _ = mixed(world)
    other = newcomer(world)
    world.classic_join(other, "orders")
    world.leave("new")  # what it held is free
    (joined,) = world.classic_join(old, "orders", owned=ALL)
    kept = read_assignment(world.classic_sync(old, joined.generation_id).assignment)[1]
    world.classic_join(other, "orders")
    free = [each for each in ALL["orders"] if each not in kept["orders"]]
    assert all(may_commit(world, old, joined.generation_id, each) for each in free)
    assert world.owns(other) == {}
    world.classic_join(old, "orders", owned=kept)
    world.classic_join(other, "orders")
    assert world.owns(other) == {"orders": free}


# --- who notices that a topic has grown


def test_the_leader_of_a_classic_group_joins_again_when_a_topic_that_only_another_member_reads_has_grown() -> None:
    world = ConversionWorld(no_wait(), orders=1, payments=1)
    leader = ClassicClient(world, ["orders"], None, ("range",))
    other = ClassicClient(world, ["payments"], None, ("range",))

    def go_on() -> None:
        for _ in range(12):
            world.advance(0.5)
            for client in (leader, other):
                client.listen()
                client.act()

    go_on()
    assert other.held == {("payments", 0)}
    world.grow("payments", 1)
    go_on()
    assert other.held == {("payments", 0), ("payments", 1)}
