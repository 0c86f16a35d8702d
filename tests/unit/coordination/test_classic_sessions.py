"""Heartbeats and sessions of classic groups, and what they cost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headpond.coordination.groups.deadline import Deadline
from headpond.model import ErrorCode
from simulation.harness.clock import ManualClock
from unit.coordination.classic_world import DELAY_MS, GROUP, SESSION_MS, World


def test_heartbeats_keep_a_member_in() -> None:
    world = World()
    (member_id,) = world.stable(1)
    for _ in range(10):
        world.advance_ms(SESSION_MS - 1)
        assert world.heartbeat(member_id, 1) == ErrorCode.NONE


def test_a_member_without_heartbeats_is_out_after_its_session() -> None:
    world = World()
    first_id, second_id = world.stable(2)
    world.advance_ms(SESSION_MS - 1)
    world.heartbeat(first_id, 1)
    world.advance_ms(1)
    assert list(world.group().members) == [first_id]
    assert world.heartbeat(second_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(first_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_last_member_that_is_gone_leaves_an_empty_group_in_the_log() -> None:
    world = World()
    world.stable(1)
    world.advance_ms(SESSION_MS)
    assert world.group().state == "Empty"
    stored = world.stored
    assert stored is not None
    assert (stored.generation, stored.members, stored.protocol_type) == (2, [], "consumer")
    assert stored.current_state_timestamp == world.clock.now_ms()


def test_the_leader_that_is_gone_is_replaced() -> None:
    world = World()
    leader_id, second_id = world.stable(2)
    world.advance_ms(SESSION_MS - 1)
    world.heartbeat(second_id, 1)
    world.advance_ms(1)
    assert world.group().leader_id == second_id != leader_id
    rejoined = world.join(second_id).answer
    assert rejoined.leader == second_id and len(rejoined.members) == 1


@pytest.mark.parametrize("jump_ms", [-5 * 3_600_000, 5 * 3_600_000])
def test_a_wall_clock_that_jumps_neither_ends_a_session_nor_prolongs_it(jump_ms: int) -> None:
    world = World()
    first_id, second_id = world.stable(2)
    world.clock.wall_offset_ms += jump_ms
    world.advance_ms(SESSION_MS - 1)
    assert list(world.group().members) == [first_id, second_id]
    world.heartbeat(first_id, 1)
    world.clock.wall_offset_ms -= 2 * jump_ms
    world.advance_ms(1)
    assert list(world.group().members) == [first_id]


def test_a_member_that_waits_needs_no_heartbeat() -> None:
    world = World()
    first_id, second_id = world.stable(2, rebalance_ms=600_000)
    waiting = world.join(first_id, rebalance_ms=600_000)
    for _ in range(5):
        world.advance_ms(SESSION_MS - 1)
        world.heartbeat(second_id, 1)
    assert waiting.is_parked
    world.join(second_id)
    assert waiting.answer.generation_id == 2
    world.advance_ms(SESSION_MS - 1)
    assert first_id in world.group().members  # its session began anew with the answer
    world.advance_ms(1)
    assert first_id not in world.group().members


def test_a_follower_that_waits_for_the_leader_needs_no_heartbeat_but_does_after() -> None:
    world = World()
    leader_id, _ = world.enter(rebalance_ms=600_000)
    follower_id, _ = world.enter(rebalance_ms=600_000)
    world.advance_ms(2 * DELAY_MS)
    synced = world.sync(follower_id, 1)
    for _ in range(3):
        world.advance_ms(SESSION_MS - 1)
        world.heartbeat(leader_id, 1)
    assert synced.is_parked
    world.sync(leader_id, 1, {})
    world.advance_ms(SESSION_MS - 1)
    world.heartbeat(leader_id, 1)
    assert follower_id in world.group().members
    world.advance_ms(1)
    assert follower_id not in world.group().members


def test_heartbeats_are_fine_in_the_sync_phase() -> None:
    world = World()
    member_id, _ = world.enter()
    world.advance_ms(DELAY_MS)
    assert world.group().state == "CompletingRebalance"
    assert world.heartbeat(member_id, 1) == ErrorCode.NONE


@pytest.mark.parametrize("generation", [-1, 0, 2])
def test_a_wrong_generation_is_illegal(generation: int) -> None:
    world = World()
    (member_id,) = world.stable(1)
    assert world.heartbeat(member_id, generation) == ErrorCode.ILLEGAL_GENERATION


def test_strangers_are_unknown() -> None:
    world = World()
    assert world.heartbeat("somebody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("somebody", 1, group_id="") == ErrorCode.INVALID_GROUP_ID
    (member_id,) = world.stable(1)
    assert world.heartbeat("somebody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    world.leave(member_id)
    assert world.heartbeat(member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_between_the_timer_and_its_decision_saves_the_member() -> None:
    world = World()
    (member_id,) = world.stable(1)
    group, rebalances = world.group(), world.classic.rebalances
    world.advance_ms(SESSION_MS - 1)
    world.heartbeat(member_id, 1)
    assert rebalances.expire_session(group, member_id).records == ()
    assert member_id in group.members


def test_a_session_that_is_shortened_by_the_first_answer_counts() -> None:
    """A new member may wait five minutes for its first answer; its session is shorter."""
    world = World()
    member_id, _ = world.enter(session_ms=6_000)
    world.advance_ms(DELAY_MS)
    world.advance_ms(6_000)
    assert member_id not in world.group().members


# --- what it costs


class CountingClock(ManualClock):
    def __init__(self) -> None:
        super().__init__()
        self.timers_set = 0

    def call_later(self, delay_s: float, callback: Callable[[], None]):  # type: ignore[no-untyped-def]
        self.timers_set += 1
        return super().call_later(delay_s, callback)


def test_putting_a_deadline_off_sets_no_timer() -> None:
    clock = CountingClock()
    expired: list[float] = []
    deadline = Deadline(clock, lambda: expired.append(clock.monotonic()))
    for _ in range(1_000):
        deadline.put_off(45_000)
        clock.advance(3)
    assert clock.timers_set < 3_000 / 45 + 10
    assert expired == []
    clock.advance(45)
    assert expired == [2_997 + 45]


def test_a_deadline_that_comes_nearer_fires_at_its_new_time() -> None:
    clock = ManualClock()
    expired: list[float] = []
    deadline = Deadline(clock, lambda: expired.append(clock.monotonic()))
    deadline.put_off(300_000)
    deadline.put_off(10_000)
    clock.advance(300)
    assert expired == [10.0]


def test_a_cancelled_deadline_never_fires_and_may_be_put_off_again() -> None:
    clock = ManualClock()
    expired: list[float] = []
    deadline = Deadline(clock, lambda: expired.append(clock.monotonic()))
    deadline.put_off(1_000)
    deadline.cancel()
    clock.advance(5)
    assert expired == []
    deadline.put_off(1_000)
    clock.advance(1)
    assert expired == [6.0]


def test_a_group_that_is_gone_leaves_no_timer_behind() -> None:
    world = World()
    world.stable(2, instances=("one",))
    world.new_id()
    world.enter()
    world.classic.close()
    assert world.clock.next_timer_s() is None
    assert world.group(GROUP).state == "Dead"
