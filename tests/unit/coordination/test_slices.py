"""Work that takes long is done a slice at a time, everybody's in turn, and the loop is free in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headpond.coordination.slices import PAUSE_S, Slices, Work, finish_now, while_wanted
from simulation.harness.clock import ManualClock
from simulation.harness.turns import settle
from simulation.harness.workers import SimulatedWorkers, inside_worker


def counting(name: str, slices: int, seen: list[str]) -> Work[str]:
    for _ in range(slices):
        seen.append(name)
        yield
    return name.upper()


def test_whatever_there_is_to_do_one_slice_is_done_between_two_pauses() -> None:
    async def run() -> None:
        clock, seen = ManualClock(), list[str]()
        slices = Slices(clock, SimulatedWorkers(clock))
        works = [asyncio.ensure_future(slices.finish(counting(name, 3, seen))) for name in "abc"]
        for done in range(1, 10):
            await settle(20)
            assert len(seen) == done
            clock.advance(PAUSE_S)
        assert await asyncio.gather(*works) == ["A", "B", "C"]
        assert seen == list("abcabcabc")

    asyncio.run(run())


def test_work_that_fails_tells_whoever_waits_for_it_and_nobody_else() -> None:
    def failing() -> Work[None]:
        yield
        raise ValueError("bad")

    async def run() -> None:
        clock = ManualClock()
        slices = Slices(clock, SimulatedWorkers(clock))
        bad = asyncio.ensure_future(slices.finish(failing()))
        good = asyncio.ensure_future(slices.finish(counting("a", 3, [])))
        await clock.run_until(good)
        assert good.result() == "A"
        with pytest.raises(ValueError, match="bad"):
            await bad

    asyncio.run(run())


def test_work_that_nobody_wants_any_more_ends_in_its_next_pause() -> None:
    seen: list[str] = []
    assert finish_now(while_wanted(counting("a", 5, seen), lambda: len(seen) < 2)) is None
    assert seen == ["a", "a"]
    assert finish_now(while_wanted(counting("a", 5, seen), lambda: True)) == "A"


def test_a_job_that_work_yields_is_done_by_a_worker_and_the_work_goes_on_with_its_result() -> None:
    def asking() -> Work[list[bool]]:
        first = yield inside_worker
        yield
        second = yield inside_worker
        return [first, inside_worker(), second]

    async def run() -> None:
        clock = ManualClock()
        slices = Slices(clock, SimulatedWorkers(clock))
        done = asyncio.ensure_future(slices.finish(while_wanted(asking(), lambda: True)))
        await clock.run_until(done)
        assert done.result() == [True, False, True]

    asyncio.run(run())
    assert finish_now(while_wanted(asking(), lambda: True)) == [False, False, False]


def test_slices_do_not_wait_for_a_job_that_takes_long_and_jobs_wait_for_one_another() -> None:
    class SlowWorkers(SimulatedWorkers):
        def __init__(self, clock: ManualClock) -> None:
            super().__init__(clock)
            self.begun = 0
            self.may_end = asyncio.Event()

        async def run(self, function: Any, *arguments: Any) -> Any:
            self.begun += 1
            await self.may_end.wait()
            return function(*arguments)

    def asking() -> Work[int]:
        return (yield lambda: 7)

    async def run() -> None:
        clock = ManualClock()
        workers = SlowWorkers(clock)
        slices = Slices(clock, workers)
        slow = [asyncio.ensure_future(slices.finish(asking())) for _ in range(2)]
        quick = asyncio.ensure_future(slices.finish(counting("a", 3, [])))
        await clock.run_until(quick)
        assert workers.begun == 1
        workers.may_end.set()
        assert await asyncio.gather(*slow) == [7, 7]

    asyncio.run(run())
