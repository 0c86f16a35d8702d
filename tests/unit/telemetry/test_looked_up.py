"""Facts that only a worker can find out; how late the loop's timers come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from headpond.runtime.process_facts import process_facts
from headpond.telemetry.looked_up import WAIT_S, LookedUp
from headpond.telemetry.loop_watch import PERIOD_S, LoopWatch
from simulation.harness.clock import ManualClock


class HeldWorkers:
    """Jobs end when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]] = []

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        raise NotImplementedError

    def submit(self, function: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self.jobs.append((function, done))

    def end_one(self) -> None:
        function, done = self.jobs.pop(0)
        try:
            result = function()
        except Exception as error:
            done(None, error)
        else:
            done(result, None)


def test_a_fact_is_fresh_at_each_scrape() -> None:
    async def main() -> None:
        clock, workers, free = ManualClock(), HeldWorkers(), iter([10, 9])
        fact = LookedUp(lambda: next(free), clock, workers)
        for value in (10, 9):
            asking = asyncio.ensure_future(fact.refresh())
            await asyncio.sleep(0)
            workers.end_one()
            await asking
            assert fact.value == value
        assert clock.next_timer_s() is None

    asyncio.run(main())


def test_a_disk_that_hangs_is_not_waited_for_and_not_asked_twice() -> None:
    async def main() -> None:
        clock, workers = ManualClock(), HeldWorkers()
        fact = LookedUp(lambda: 7, clock, workers)
        for _ in range(3):
            asking = asyncio.ensure_future(fact.refresh())
            await asyncio.sleep(0)
            assert clock.next_timer_s() == WAIT_S
            clock.advance(WAIT_S)
            await asking
            assert fact.value is None
        assert len(workers.jobs) == 1
        workers.end_one()
        assert fact.value == 7

    asyncio.run(main())


def test_a_look_that_fails_keeps_the_former_value(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        clock, workers = ManualClock(), HeldWorkers()
        answers: list[Any] = [7, OSError("no such folder")]

        def look() -> int:
            answer = answers.pop(0)
            if isinstance(answer, OSError):
                raise answer
            return int(answer)

        fact = LookedUp(look, clock, workers)
        for _ in range(2):
            asking = asyncio.ensure_future(fact.refresh())
            await asyncio.sleep(0)
            workers.end_one()
            await asking
        assert fact.value == 7

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert "could not be looked up" in caplog.text


def test_the_loops_lag_is_how_late_its_timer_comes() -> None:
    clock = ManualClock()
    watch = LoopWatch(clock)
    watch.start()
    for late_s in (0.0, 0.3):
        assert clock.next_timer_s() == PERIOD_S
        clock.stall(PERIOD_S + late_s)
        assert clock.advance(0) == 1
    assert watch.lag.count == 2
    assert watch.lag.sum == pytest.approx(0.3)
    watch.stop()
    assert clock.next_timer_s() is None


def test_what_the_system_says_about_this_process() -> None:
    facts = process_facts()
    assert facts.cpu_s > 0
    assert 1e6 < facts.resident_bytes <= facts.virtual_bytes
    assert 3 <= facts.open_files <= facts.open_files_max
    assert facts.started_s > 1.7e9
