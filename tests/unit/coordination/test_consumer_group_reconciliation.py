"""A partition changes hands only after its holder has given it up."""

from __future__ import annotations

from headpond.coordination.groups.consumer.member import Member, MemberState
from headpond.coordination.groups.consumer.reconciliation import Goal, reconcile
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from unit.coordination.consumer_world import REBALANCE_MS, World, topic_id

A, B = topic_id(1), topic_id(2)
Owned = ConsumerGroupHeartbeatRequest.TopicPartitions


def step(
    member: Member,
    target: dict[bytes, set[int]],
    epoch: int,
    owned: list[Owned] | None = None,
    *,
    taken: frozenset[tuple[bytes, int]] = frozenset(),
    subscribed: frozenset[bytes] = frozenset((A, B)),
    changed: bool = False,
) -> Member:
    goal = Goal(
        epoch,
        {each: frozenset(partitions) for each, partitions in target.items()},  # type: ignore[misc]
        subscribed,  # type: ignore[arg-type]
        lambda topic, partition: (topic, partition) in taken,
    )
    return reconcile(member, goal, owned, subscription_changed=changed)


def test_a_new_member_gets_all_that_is_free_in_the_targets_epoch() -> None:
    member = step(Member("m"), {A: {0, 1}}, 5)
    assert (member.epoch, member.previous_epoch, member.state) == (5, 0, MemberState.STABLE)
    assert member.assigned == {A: {0: 5, 1: 5}}


def test_what_others_hold_comes_later() -> None:
    member = step(Member("m"), {A: {0, 1}}, 5, taken=frozenset({(A, 1)}))
    assert (member.epoch, member.state, member.assigned) == (5, MemberState.UNRELEASED_PARTITIONS, {A: {0: 5}})
    member = step(member, {A: {0, 1}}, 6)
    assert (member.epoch, member.state, member.assigned) == (6, MemberState.STABLE, {A: {0: 5, 1: 6}})


def test_giving_up_comes_before_getting_and_the_epoch_waits_for_it() -> None:
    held = Member("m", epoch=5, assigned={A: {0: 5, 1: 5}})
    member = step(held, {A: {0}, B: {0}}, 6)
    assert (member.epoch, member.state) == (5, MemberState.UNREVOKED_PARTITIONS)
    assert (member.assigned, member.revoking) == ({A: {0: 5}}, {A: {1: 5}})
    assert step(member, {A: {0}, B: {0}}, 6) is member  # it did not say
    assert step(member, {A: {0}, B: {0}}, 6, [Owned(A, [0, 1])]) is member  # it still has it
    member = step(member, {A: {0}, B: {0}}, 6, [Owned(A, [0])])
    assert (member.epoch, member.state) == (6, MemberState.STABLE)
    assert (member.assigned, member.revoking) == ({A: {0: 5}, B: {0: 6}}, {})


def test_a_newer_target_that_gives_it_back_still_waits_for_the_revocation() -> None:
    member = step(Member("m", epoch=5, assigned={A: {0: 5, 1: 5}}), {A: {0}}, 6)
    assert step(member, {A: {0, 1}}, 7) is member
    member = step(member, {A: {0, 1}}, 7, [Owned(A, [0])])
    assert (member.epoch, member.state, member.assigned) == (7, MemberState.STABLE, {A: {0: 5, 1: 7}})


def test_one_revocation_after_another_moves_the_epoch_by_one_at_a_time() -> None:
    member = step(Member("m", epoch=5, assigned={A: {0: 5, 1: 5}}), {A: {0}}, 6)
    member = step(member, {}, 9, [Owned(A, [0])])
    assert (member.epoch, member.state, member.revoking) == (6, MemberState.UNREVOKED_PARTITIONS, {A: {0: 5}})


def test_a_target_that_is_older_than_the_subscription_does_not_bring_unwanted_topics() -> None:
    member = step(Member("m", epoch=4, assigned={B: {0: 4}}), {A: {0}, B: {0}}, 5, subscribed=frozenset((B,)))
    assert member.assigned == {B: {0: 4}}


def test_an_unwanted_topic_is_given_up_before_there_is_a_new_target() -> None:
    held = Member("m", epoch=5, assigned={A: {0: 5}, B: {0: 5}})
    member = step(held, {A: {0}, B: {0}}, 5, subscribed=frozenset((B,)), changed=True)
    assert (member.epoch, member.state) == (5, MemberState.UNREVOKED_PARTITIONS)
    assert (member.assigned, member.revoking) == ({B: {0: 5}}, {A: {0: 5}})
    member = step(member, {A: {0}, B: {0}}, 5, [Owned(B, [0])], subscribed=frozenset((B,)))
    assert (member.epoch, member.state, member.assigned) == (5, MemberState.STABLE, {B: {0: 5}})


def test_an_unwanted_topic_that_is_given_up_already_is_just_gone() -> None:
    held = Member("m", epoch=5, assigned={A: {0: 5}, B: {0: 5}})
    member = step(held, {A: {0}, B: {0}}, 5, [Owned(B, [0])], subscribed=frozenset((B,)), changed=True)
    assert (member.state, member.assigned, member.revoking) == (MemberState.STABLE, {B: {0: 5}}, {})


def test_a_state_of_a_newer_broker_makes_the_member_start_anew() -> None:
    strange = Member("m", epoch=5, state=MemberState.UNKNOWN, assigned={A: {0: 5}})
    for owned in (None, [Owned(A, [0])]):
        try:
            step(strange, {A: {0}}, 6, owned)
        except BrokerError as refused:
            assert refused.code is ErrorCode.FENCED_MEMBER_EPOCH
        else:
            raise AssertionError("not fenced")
    assert step(strange, {A: {0}}, 6, []).epoch == 6


# --- in a group


def two_members() -> World:
    """``one`` holds four partitions, two of which ``two`` is to get."""
    world = World(orders=4)
    world.join("one", "orders")
    assert world.held(world.join("two", "orders")) == {}
    return world


def test_a_partition_is_handed_over_when_its_holder_has_acknowledged() -> None:
    world = two_members()
    assert world.held(world.beat("one", 2)) == {"orders": [0, 1]}
    assert world.held(world.beat("two", 3)) is None
    assert world.beat("one", 2, owned={"orders": [0, 1, 2, 3]}).member_epoch == 2
    assert world.held(world.beat("two", 3)) is None
    assert world.beat("one", 2, owned={"orders": [0, 1]}).member_epoch == 3
    assert world.held(world.beat("two", 3)) == {"orders": [2, 3]}
    assert world.group().state == "Stable"


def test_a_partition_is_free_when_its_holder_is_gone() -> None:
    world = two_members()
    world.beat("one", 2)
    world.leave("one")
    assert world.held(world.beat("two", 3)) == {"orders": [0, 1, 2, 3]}


def test_a_member_that_does_not_give_up_in_time_is_fenced() -> None:
    world = two_members()
    world.beat("one", 2)
    for _ in range(REBALANCE_MS // 1_000 - 1):
        world.advance(1)
        assert world.beat("one", 2).member_epoch == 2  # alive, and not done
        world.beat("two", 3)
    world.advance(1)
    assert list(world.group().members) == ["two"]
    assert world.held(world.beat("two", 3)) == {"orders": [0, 1, 2, 3]}


def test_a_member_that_gives_up_in_time_is_not_fenced() -> None:
    world = two_members()
    world.beat("one", 2)
    world.advance(REBALANCE_MS / 1_000 - 1)
    world.beat("one", 2, owned={"orders": [0, 1]})
    world.advance(5)
    assert "one" in world.group().members


def test_the_rebalance_time_out_of_a_member_is_not_prolonged_by_the_rebalances_of_others() -> None:
    world = two_members()
    world.beat("one", 2)
    for count in range(10):
        world.advance(REBALANCE_MS / 1_000 / 10)
        world.beat("two", world.group().members["two"].epoch)
        world.put_topic("orders", 5 + count)
        if "one" in world.group().members:
            world.beat("one", 2)
    assert "one" not in world.group().members


def test_a_restart_in_the_middle_of_a_hand_over_forgets_nothing() -> None:
    world = two_members()
    world.beat("one", 2)
    world.restart()
    assert world.held(world.beat("two", 3)) is None
    world.beat("one", 2, owned={"orders": [0, 1]})
    world.restart()
    assert world.held(world.beat("two", 3)) == {"orders": [2, 3]}


def test_the_rebalance_time_out_runs_after_a_restart_too() -> None:
    world = two_members()
    world.beat("one", 2)
    world.restart()
    world.advance(REBALANCE_MS / 1_000 - 1)
    world.beat("one", 2)
    world.advance(1.1)
    assert "one" not in world.group().members
