"""Static members: an instance that restarts finds what it held, and nobody else takes its place meanwhile."""

from __future__ import annotations

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.consumer.member import LEFT_FOR_NOW_EPOCH
from headpond.model import ErrorCode
from unit.coordination.consumer_world import World


def with_static_member(settings: GroupSettings | None = None) -> World:
    world = World(settings, orders=4)
    world.join("first", "orders", instance_id="pod-0")
    return world


def test_an_instance_that_left_for_now_keeps_its_partitions() -> None:
    world = with_static_member()
    response = world.leave("first", LEFT_FOR_NOW_EPOCH, instance_id="pod-0")
    assert (response.member_id, response.member_epoch) == ("first", -2)
    assert world.owns("first") == {"orders": [0, 1, 2, 3]}
    assert world.group().state == "Reconciling"
    world.join("other", "orders")
    assert world.owns("other") == {}


def test_it_comes_back_under_another_id_without_a_rebalance() -> None:
    world = with_static_member()
    world.leave("first", LEFT_FOR_NOW_EPOCH, instance_id="pod-0")
    response = world.join("second", "orders", instance_id="pod-0")
    assert (response.member_id, response.member_epoch) == ("second", 2)
    assert world.held(response) == {"orders": [0, 1, 2, 3]}
    assert (list(world.group().members), world.group().static_ids) == (["second"], {"pod-0": "second"})
    assert (world.group().epoch, world.group().state) == (2, "Stable")


def test_it_comes_back_under_the_same_id_and_its_session_runs() -> None:
    world = with_static_member()
    world.leave("first", LEFT_FOR_NOW_EPOCH, instance_id="pod-0")
    assert world.join("first", "orders", instance_id="pod-0").member_epoch == 2
    assert list(world.group().members) == ["first"]
    world.advance(44)
    assert list(world.group().members) == ["first"]
    world.advance(2)
    assert world.group().is_empty


def test_it_comes_back_with_another_subscription() -> None:
    world = with_static_member()
    world.put_topic("payments", 1)
    world.leave("first", LEFT_FOR_NOW_EPOCH, instance_id="pod-0")
    response = world.join("second", "payments", instance_id="pod-0")
    assert (response.member_epoch, world.held(response)) == (3, {"payments": [0]})


def test_it_does_not_come_back_in_time() -> None:
    world = with_static_member()
    world.leave("first", LEFT_FOR_NOW_EPOCH, instance_id="pod-0")
    world.advance(46)
    assert world.group().is_empty
    assert world.group().static_ids == {}


def test_an_instance_id_in_use_is_not_given_away() -> None:
    world = with_static_member()
    assert world.error(lambda: world.join("second", "orders", instance_id="pod-0")) == (
        ErrorCode.UNRELEASED_INSTANCE_ID,
        "Static member second with instance id pod-0 cannot join the group because the instance id is owned by first "
        "member.",
    )


def test_whoever_was_replaced_is_fenced() -> None:
    world = with_static_member()
    world.leave("first", LEFT_FOR_NOW_EPOCH, instance_id="pod-0")
    world.join("second", "orders", instance_id="pod-0")
    fenced = (
        ErrorCode.FENCED_INSTANCE_ID,
        "Static member first with instance id pod-0 was fenced by member second.",
    )
    assert world.error(lambda: world.beat("first", 2, instance_id="pod-0")) == fenced
    assert world.error(lambda: world.leave("first", instance_id="pod-0")) == fenced
    assert world.error(lambda: world.leave("first", -2, instance_id="pod-0")) == fenced


def test_who_left_for_now_can_not_go_on_as_if_nothing_had_happened() -> None:
    world = with_static_member()
    world.leave("first", LEFT_FOR_NOW_EPOCH, instance_id="pod-0")
    code, message = world.error(lambda: world.beat("first", 2, instance_id="pod-0"))
    assert code is ErrorCode.FENCED_MEMBER_EPOCH
    assert "greater member epoch (2) than the one known by the group coordinator (-2)" in message


def test_an_unknown_instance_id_is_refused() -> None:
    world = with_static_member()
    refusal = (ErrorCode.UNKNOWN_MEMBER_ID, "Instance id pod-9 is unknown.")
    assert world.error(lambda: world.beat("first", 2, instance_id="pod-9")) == refusal
    assert world.error(lambda: world.leave("first", instance_id="pod-9")) == refusal


def test_a_static_member_that_leaves_for_good_is_gone() -> None:
    world = with_static_member()
    assert world.leave("first", instance_id="pod-0").member_epoch == -1
    assert (world.group().is_empty, world.group().static_ids) == (True, {})


def test_what_it_had_to_give_up_is_free_when_it_leaves_for_now() -> None:
    world = with_static_member()
    world.join("other", "orders")
    world.beat("first", 2, instance_id="pod-0")
    world.leave("first", LEFT_FOR_NOW_EPOCH, instance_id="pod-0")
    assert world.held(world.beat("other", 3)) == {"orders": [2, 3]}
    response = world.join("second", "orders", instance_id="pod-0")
    assert (response.member_epoch, world.held(response)) == (3, {"orders": [0, 1]})


def test_a_restart_between_leaving_and_coming_back_changes_nothing() -> None:
    world = with_static_member()
    world.leave("first", LEFT_FOR_NOW_EPOCH, instance_id="pod-0")
    world.restart()
    response = world.join("second", "orders", instance_id="pod-0")
    world.restart()
    assert world.held(response) == {"orders": [0, 1, 2, 3]} == world.owns("second")
    assert world.beat("second", 2, instance_id="pod-0").member_epoch == 2


def test_who_comes_back_within_the_assignment_interval_takes_its_target_over() -> None:
    world = with_static_member(GroupSettings())
    world.join("other", "orders")
    world.leave("first", LEFT_FOR_NOW_EPOCH, instance_id="pod-0")
    assert world.held(world.join("second", "orders", instance_id="pod-0")) == {"orders": [0, 1, 2, 3]}
    world.advance(1)
    assert world.held(world.beat("second", 2, instance_id="pod-0")) == {"orders": [0, 1]}


def test_a_member_may_become_static_and_change_its_instance_id() -> None:
    world = World(orders=4)
    world.join("one", "orders")
    for instance_id in ("pod-0", "pod-1"):
        world.join("one", "orders", instance_id=instance_id)
        assert world.group().static_ids == {instance_id: "one"}
    world.leave("one", instance_id="pod-1")
    assert world.group().static_ids == {}
