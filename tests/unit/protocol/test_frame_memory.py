"""Memory for requests in progress: granted for whole frames, in turn, and taken from those who make no use of it."""

from __future__ import annotations

import random

from headpond.protocol.frame_memory import (
    FRAME_S_MAX,
    GRACE_S,
    ORDINARY_BYTES_MAX,
    POOLED_BYTES_MAX,
    SMALL_BYTES,
    FrameMemory,
    ReceiveBuffer,
    capacity_for,
)

MIB = 1 << 20
BUDGET = 256 * MIB
HUNDRED_MB = 100_000_000


class World:
    def __init__(self, budget_bytes: int = BUDGET, frame_bytes_max: int = 100 * MIB) -> None:
        self.now_s = 0.0
        self.allocated: list[int] = []
        self.memory = FrameMemory(
            budget_bytes, frame_bytes_max, now_s=lambda: self.now_s, allocate=self.allocate, shared=ReceiveBuffer(MIB)
        )

    def allocate(self, size_bytes: int) -> bytearray:
        self.allocated.append(size_bytes)
        return bytearray(size_bytes)

    def frame(self, size_bytes: int, host: str = "a") -> Frame:
        return Frame(self, size_bytes, host)


class Frame:
    def __init__(self, world: World, size_bytes: int, host: str) -> None:
        self.host = host
        self.claimed_bytes = 0
        self.received_share = 0.0
        self.world = world
        self.is_granted = world.memory.claim(self, size_bytes)

    def granted(self) -> None:
        assert not self.is_granted
        self.is_granted = True

    def put_out(self) -> None:
        self.end()

    def end(self) -> None:
        self.world.memory.give_up(self)


def test_a_frame_is_granted_whole_and_waits_while_that_much_is_not_free() -> None:
    world = World()
    frames = [world.frame(HUNDRED_MB) for _ in range(4)]
    assert [frame.is_granted for frame in frames] == [True, True, False, False]
    frames[0].end()
    assert [frame.is_granted for frame in frames[2:]] == [True, False]


def test_ten_requests_of_100_mb_at_once_are_all_received_one_after_the_other() -> None:
    world = World()
    waiting = [world.frame(HUNDRED_MB) for _ in range(10)]
    order = []
    while waiting:
        world.now_s += 1  # they are received at 100 MB a second
        ready = [frame for frame in waiting if frame.is_granted]
        assert not any(frame in world.memory.off_course() for frame in ready)
        order.append(waiting.index(ready[0]))
        waiting.remove(ready[0])
        ready[0].end()
    assert order == [0] * 10, "first come, first served"
    assert world.memory.in_use_bytes == 0


def test_a_frame_that_is_granted_is_not_memory_before_it_comes() -> None:
    world = World()
    world.frame(HUNDRED_MB)
    assert world.allocated == []


def test_large_frames_never_keep_an_ordinary_one_waiting() -> None:
    world = World()
    for _ in range(30):
        world.frame(HUNDRED_MB)
    ordinary = [world.frame(1_000_000) for _ in range(40)]
    assert all(frame.is_granted for frame in ordinary)


def test_ordinary_frames_have_what_large_ones_leave_and_make_way_for_them() -> None:
    world = World()
    ordinary = [world.frame(ORDINARY_BYTES_MAX) for _ in range(110)]
    assert all(frame.is_granted for frame in ordinary)
    large = world.frame(HUNDRED_MB)
    assert not large.is_granted
    late = world.frame(ORDINARY_BYTES_MAX)
    assert not late.is_granted, "or a large one would never have its turn"
    for frame in ordinary:
        frame.end()
    assert large.is_granted
    assert late.is_granted


def test_a_later_frame_does_not_overtake_one_that_waits() -> None:
    world = World()
    first, second = world.frame(HUNDRED_MB), world.frame(90 * MIB)
    third, fourth = world.frame(HUNDRED_MB), world.frame(3 * MIB)
    assert second.is_granted
    assert not fourth.is_granted, "there is room for it, but the third came before"
    first.end()
    assert third.is_granted
    second.end()
    assert fourth.is_granted


def test_the_largest_frame_is_received_even_with_a_budget_of_just_that_size() -> None:
    world = World(budget_bytes=100 * MIB)
    assert world.frame(100 * MIB).is_granted
    assert world.frame(ORDINARY_BYTES_MAX).is_granted


def test_hosts_take_turns() -> None:
    world = World()
    held = [world.frame(HUNDRED_MB) for _ in range(2)]
    many = [world.frame(HUNDRED_MB, "a") for _ in range(5)]
    other = world.frame(HUNDRED_MB, "b")
    held[0].end()
    held[1].end()
    assert [frame.is_granted for frame in many] == [True, False, False, False, False]
    assert other.is_granted, "although it came last"


def test_of_several_hosts_none_gets_more_than_half() -> None:
    world = World()
    world.memory.has_many_hosts = True
    greedy = [world.frame(HUNDRED_MB, "a") for _ in range(3)]
    assert [frame.is_granted for frame in greedy] == [True, False, False]
    assert world.frame(90 * MIB, "b").is_granted
    greedy[0].end()
    assert greedy[1].is_granted


def test_who_sends_next_to_nothing_is_found_after_the_grace_however_often_it_sends() -> None:
    world = World()
    squatters = [world.frame(ORDINARY_BYTES_MAX) for _ in range(200)]
    victim = world.frame(1_000_000)
    assert not victim.is_granted
    for _ in range(20):
        world.now_s += GRACE_S / 20
        for squatter in squatters:
            squatter.received_share += 1 / ORDINARY_BYTES_MAX  # a byte every tenth of a second
        assert world.memory.off_course() == []
    rounds = 0
    while not victim.is_granted:
        rounds += 1
        world.now_s += 1
        for frame in world.memory.off_course():
            frame.put_out()
    assert world.now_s <= 2 * (GRACE_S + 1), "those who waited before it have had their turn, too"
    assert rounds <= 4


def test_who_is_on_course_stays_and_who_falls_behind_goes() -> None:
    world = World()
    steady, slow = world.frame(HUNDRED_MB), world.frame(90 * MIB)
    world.frame(HUNDRED_MB)
    for second in range(1, int(FRAME_S_MAX) + 3):
        world.now_s = float(second)
        steady.received_share = second / FRAME_S_MAX
        slow.received_share = second / FRAME_S_MAX / 2
        found = world.memory.off_course()
        assert steady not in found
        assert (slow in found) is (slow.received_share < (second - GRACE_S) / FRAME_S_MAX)
    assert slow in found


def test_nobody_is_found_as_long_as_nobody_waits_and_no_more_than_are_needed() -> None:
    world = World()
    idle = [world.frame(HUNDRED_MB) for _ in range(2)]
    idle[0].received_share = 0.01
    world.now_s = 1_000.0
    assert world.memory.off_course() == []
    world.frame(HUNDRED_MB)
    assert world.memory.off_course() == [idle[1]], "the one of which least has come"


def test_a_host_that_waits_for_its_own_frames_costs_other_hosts_nothing() -> None:
    world = World()
    world.memory.has_many_hosts = True
    own = world.frame(HUNDRED_MB, "a")
    slow = world.frame(10 * MIB, "b")
    assert not world.frame(HUNDRED_MB, "a").is_granted
    world.now_s = 1_000.0
    assert world.memory.off_course() == [own]
    assert slow.is_granted


def test_when_much_is_kept_that_was_not_asked_for_every_read_is_small() -> None:
    world = World()
    memory = world.memory
    kept = []
    while memory.shared.offered is memory.shared.view:
        kept.append(memory.take_kept(MIB))
    assert len(kept) == BUDGET // 16 // MIB + 1
    assert len(memory.shared.offered) == SMALL_BYTES
    memory.give_back_kept(kept.pop())
    assert memory.shared.offered is memory.shared.view


def test_what_is_kept_takes_nothing_from_what_is_granted() -> None:
    world = World()
    for _ in range(20_000):  # a byte from each of so many connections
        world.memory.take_kept(1)
    assert world.frame(HUNDRED_MB).is_granted
    assert world.frame(1_000_000).is_granted


def test_buffers_are_used_again_but_not_hoarded() -> None:
    world = World()
    memory = world.memory
    first = memory.take(capacity_for(1_000_000))
    memory.give_back(first)
    assert memory.take(capacity_for(1_000_100)) is first
    for buffer in [memory.take(capacity_for(8_000_000)) for _ in range(8)]:
        memory.give_back(buffer)
    assert memory._idle_bytes <= POOLED_BYTES_MAX


def test_whatever_comes_and_goes_the_budget_holds_and_everybody_has_a_turn() -> None:
    chance = random.Random(7)
    for _ in range(30):
        world = World(budget_bytes=64 * MIB, frame_bytes_max=32 * MIB)
        world.memory.has_many_hosts = chance.random() < 0.5
        sizes = (SMALL_BYTES + 1, 200_000, 1_000_000, ORDINARY_BYTES_MAX, 3 * MIB, 20 * MIB, 32 * MIB)
        frames: list[Frame] = []
        for _ in range(300):
            if frames and chance.random() < 0.4:
                frames.pop(chance.randrange(len(frames))).end()
            else:
                frames.append(world.frame(chance.choice(sizes), chance.choice("abc")))
            assert world.memory.in_use_bytes <= 64 * MIB
        while frames:
            granted = [frame for frame in frames if frame.is_granted]
            assert granted, "some wait for nothing"
            frames.remove(granted[0])
            granted[0].end()
        assert world.memory.in_use_bytes == 0
        assert not world.memory.has_waiters
