"""The loop on virtual time: order within a life, chance between lives, ends that run nothing, equal seeds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from simulation.harness.clock import LoopClock
from simulation.harness.loop import Dead, SimulatedLoop, Stuck


def loop_of(seed: int = 1) -> SimulatedLoop:
    return SimulatedLoop(random.Random(seed))


def run(loop: SimulatedLoop, main: Coroutine[Any, Any, Any], until_s: float = 1_000) -> Any:
    return loop.run(main, until_s=until_s)


def test_hours_pass_in_no_time_and_timers_come_in_order() -> None:
    loop = loop_of()
    seen: list[tuple[str, float]] = []

    async def main() -> None:
        loop.call_later(7_200, lambda: seen.append(("two hours", loop.time())))
        loop.call_later(3_600, lambda: seen.append(("an hour", loop.time())))
        loop.call_later(3_600, lambda: seen.append(("never", loop.time()))).cancel()
        await asyncio.sleep(10_000)

    run(loop, main(), until_s=20_000)
    assert seen == [("an hour", 3_600), ("two hours", 7_200)]
    assert loop.time() == 10_000


def test_callbacks_of_one_life_keep_their_order_and_those_of_two_do_not() -> None:
    def interleaving(seed: int) -> str:
        loop = loop_of(seed)
        order: list[str] = []

        async def main() -> None:
            for letter in "ab":
                loop.new_life(letter).spawn(steps(letter), letter)
            await asyncio.sleep(1)

        async def steps(letter: str) -> None:
            for number in range(5):
                order.append(f"{letter}{number}")
                await asyncio.sleep(0)

        run(loop, main())
        assert [each for each in order if each[0] == "a"] == [f"a{number}" for number in range(5)]
        assert [each for each in order if each[0] == "b"] == [f"b{number}" for number in range(5)]
        return " ".join(order)

    assert [interleaving(seed) for seed in range(10)] == [interleaving(seed) for seed in range(10)]
    assert len({interleaving(seed) for seed in range(10)}) > 3


def test_a_life_that_ends_runs_nothing_any_more_not_even_finally() -> None:
    loop = loop_of()
    ran: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(5)
            ran.append("woke up")
        finally:
            ran.append("finally")

    async def main() -> None:
        life = loop.new_life("victim")
        life.spawn(work(), "work")
        await asyncio.sleep(1)
        life.end()
        await asyncio.sleep(10)
        assert ran == []

    run(loop, main())
    assert loop.errors == []


def test_code_that_ends_its_own_life_stops_where_it_is() -> None:
    loop = loop_of()
    ran: list[str] = []

    async def main() -> None:
        life = loop.new_life("victim")

        async def work() -> None:
            ran.append("before")
            life.end()
            raise Dead

        life.spawn(work(), "work")
        await asyncio.sleep(1)

    run(loop, main())
    assert ran == ["before"]
    assert loop.errors == []


def test_a_paused_life_is_late_and_loses_nothing() -> None:
    loop = loop_of()
    seen: list[float] = []

    async def work() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            seen.append(loop.time())

    async def main() -> None:
        life = loop.new_life("slow")
        life.spawn(work(), "work")
        await asyncio.sleep(0.5)
        life.pause(5)
        await asyncio.sleep(20)

    run(loop, main())
    assert seen == [5.5, 6.5, 7.5]


def test_tasks_inherit_their_life_through_tasks_futures_and_timers() -> None:
    loop = loop_of()
    lives: list[str] = []

    async def main() -> None:
        life = loop.new_life("host")
        future = loop.create_future()

        async def waits() -> None:
            await future
            lives.append(loop.running.name)
            loop.call_soon(lambda: lives.append(loop.running.name))
            loop.call_later(1, lambda: lives.append(loop.running.name))
            await asyncio.ensure_future(asyncio.sleep(0.5))
            lives.append(loop.running.name)

        life.spawn(waits(), "waits")
        await asyncio.sleep(1)
        future.set_result(None)  # by the driver
        await asyncio.sleep(5)

    run(loop, main())
    assert lives == ["host"] * 4


def test_sets_of_tasks_and_futures_have_an_order_that_addresses_do_not_change() -> None:
    def order() -> list[int]:
        loop = loop_of()

        async def main() -> list[int]:
            futures = [loop.create_future() for _ in range(50)]
            padding = [bytearray(random.randrange(10_000)) for _ in range(50)]  # other addresses in each run
            tasks = [loop.create_task(asyncio.sleep(0)) for _ in range(50)]
            del padding
            numbers = {each: number for number, each in enumerate([*futures, *tasks])}
            return [numbers[each] for each in {*futures, *tasks}]

        found: list[int] = run(loop, main())
        return found

    assert order() == order() == order()


def test_what_would_wait_for_ever_is_an_error() -> None:
    async def forever() -> None:
        await asyncio.get_running_loop().create_future()

    async def long() -> None:
        await asyncio.sleep(100)

    with pytest.raises(Stuck, match="forever"):
        run(loop_of(), forever())
    with pytest.raises(Stuck, match="50 virtual seconds"):
        run(loop_of(), long(), until_s=50)


def test_an_exception_in_a_callback_is_kept_with_its_life() -> None:
    loop = loop_of()

    async def main() -> None:
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    run(loop, main())
    (error,) = loop.errors
    assert error.life == "driver"
    assert isinstance(error.error, ZeroDivisionError)


def test_a_clock_runs_at_its_own_rate_and_its_wall_clock_jumps() -> None:
    loop = loop_of()

    async def main() -> None:
        clock = LoopClock(now_ms=1_000_000)
        await asyncio.sleep(10)
        clock.run_at(2.0)
        await clock.sleep(10)  # five of the loop's
        assert loop.time() == 15
        assert clock.monotonic() == 20
        clock.run_at(1.0)
        clock.wall_offset_ms -= 500_000
        assert clock.now_ms() == 520_000
        assert clock.monotonic() == 20

    run(loop, main())


def test_a_servers_timer_outlives_the_client_that_it_was_set_for() -> None:
    loop = loop_of()
    called: list[float] = []

    async def main() -> None:
        clock = LoopClock(life=loop.new_life("server"))
        client = loop.new_life("client")

        async def asks() -> None:
            clock.call_later(5, lambda: called.append(loop.time()))

        client.spawn(asks(), "asks")
        await asyncio.sleep(1)
        client.end()
        await asyncio.sleep(10)

    run(loop, main())
    assert called == [5.0]
