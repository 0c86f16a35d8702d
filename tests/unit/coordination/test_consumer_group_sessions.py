"""Members that are not heard of."""

from __future__ import annotations

import pytest

from headpond.config.groups import GroupTimes
from headpond.model import BrokerError, ErrorCode
from unit.coordination.consumer_world import GROUP, World, no_wait


def test_a_member_that_is_not_heard_of_is_fenced_when_its_session_ends() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.join("two", "orders")
    world.advance(30)
    world.beat("two", 3)
    world.advance(15.5)
    assert list(world.group().members) == ["two"]
    assert world.held(world.beat("two", 3)) == {"orders": [0, 1]}
    assert world.error(lambda: world.beat("one", 2))[0] is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("jump_ms", [-5 * 3_600_000, 5 * 3_600_000])
def test_a_wall_clock_that_jumps_neither_ends_a_session_nor_prolongs_it(jump_ms: int) -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.join("two", "orders")
    world.clock.wall_offset_ms += jump_ms
    world.advance(44)
    assert list(world.group().members) == ["one", "two"]
    world.beat("two", 3)
    world.clock.wall_offset_ms -= 2 * jump_ms
    world.advance(1.5)
    assert list(world.group().members) == ["two"]


def test_each_heartbeat_puts_the_end_of_the_session_off() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    for _ in range(10):
        world.advance(40)
        world.beat("one", 2)
    assert "one" in world.group().members


def test_a_heartbeat_that_comes_before_the_decision_saves_the_member() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.clock.advance(45.5)  # the timer has fired, nothing is decided yet
    world.beat("one", 2)
    assert "one" in world.group().members
    world.advance(45.5)
    assert "one" not in world.group().members


def test_a_fencing_that_can_not_be_written_is_tried_again() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.clock.advance(45)
    try:
        world.drain()
    except BrokerError:
        pass
    else:
        raise AssertionError("written")
    assert "one" in world.group().members
    world.append_error = None
    world.advance(1)
    assert "one" not in world.group().members


def test_sessions_start_anew_after_a_restart() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.advance(40)
    world.restart()
    world.advance(40)
    assert "one" in world.group().members
    world.advance(6)
    assert "one" not in world.group().members


def test_a_coordinator_that_is_closed_fences_nobody() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.consumer.close()
    world.advance(100)
    assert "one" in world.group().members
    assert world.clock.next_timer_s() is None


def test_no_timer_is_left_when_everybody_is_gone() -> None:
    world = World(orders=2)
    world.join("one", "orders")
    world.join("two", "orders")
    world.beat("one", 2)
    world.leave("one")
    world.leave("two")
    assert world.clock.next_timer_s() is None


def test_a_group_may_have_times_of_its_own() -> None:
    own = GroupTimes(session_timeout_ms=60_000, heartbeat_interval_ms=7_000)
    world = World(no_wait(times_of={GROUP: own}), orders=2)
    assert world.join("one", "orders").heartbeat_interval_ms == 7_000
    world.advance(59)
    assert "one" in world.group().members
    world.advance(2)
    assert "one" not in world.group().members
