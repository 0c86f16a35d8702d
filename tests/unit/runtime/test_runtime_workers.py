"""Threads for what blocks: answers on the loop, one wake-up per burst, an orderly end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from headpond.runtime import process
from headpond.runtime.workers import ThreadWorkers


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    factory = asyncio.new_event_loop if request.param == "asyncio" else process.loop_factory()

    def go(main: Any) -> Any:
        async def limited() -> Any:
            async with asyncio.timeout(20):
                return await main

        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(limited())

    return go


def test_a_job_runs_in_a_named_thread_and_answers_on_the_loop(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        workers = ThreadWorkers("test-worker")
        assert await workers.run(lambda a, b: (a + b, threading.current_thread().name), 1, 2) == (3, "test-worker-0")
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        workers.submit(lambda: 7, lambda *answer: answered.set_result((answer, threading.current_thread())))
        assert await answered == ((7, None), threading.main_thread())
        await workers.close()

    run(main())


def test_a_failure_reaches_whoever_asked(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        workers = ThreadWorkers()
        with pytest.raises(ZeroDivisionError):
            await workers.run(lambda: 1 // 0)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await workers.run(next, iter(()))
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        workers.submit(lambda: 1 // 0, lambda result, error: answered.set_result((result, type(error))))
        assert await answered == (None, ZeroDivisionError)
        await workers.close()

    run(main())


def test_jobs_run_side_by_side_up_to_the_limit(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        workers = ThreadWorkers(threads_max=3)
        barrier = threading.Barrier(3)
        await asyncio.gather(*(workers.run(barrier.wait, 10) for _ in range(6)))
        assert len(workers._threads) == 3
        await workers.close()

    run(main())


def test_threads_start_only_when_there_is_work_for_them(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        workers = ThreadWorkers(threads_max=5)
        assert workers._threads == []
        for _ in range(10):
            await workers.run(int)
        assert len(workers._threads) == 1
        await workers.close()

    run(main())


def test_one_thread_keeps_the_order_of_jobs_and_answers(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        workers = ThreadWorkers(threads_max=1)
        ran: list[int] = []
        answered: list[int] = []
        for number in range(200):
            workers.submit(lambda n=number: ran.append(n), lambda _, __, n=number: answered.append(n))  # type: ignore[misc]
        await workers.close()
        assert ran == answered == list(range(200))

    run(main())


def test_a_burst_of_answers_wakes_the_loop_once(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        workers = ThreadWorkers(threads_max=1)
        wakes = 0
        real = workers._wake_loop

        def count() -> None:
            nonlocal wakes
            wakes += 1
            real()

        workers._wake_loop = count  # type: ignore[method-assign]
        finished = threading.Event()
        answers: list[int] = []
        for number in range(100):
            workers.submit(lambda: 0, lambda _, __, n=number: answers.append(n))  # type: ignore[misc]
        workers.submit(finished.set, lambda *_: None)
        finished.wait(10)  # the loop is held up here, as by a long callback
        assert not answers
        await workers.close()
        assert len(answers) == 100
        assert wakes <= 3

    run(main())


def test_a_callback_that_fails_does_not_cost_others_their_answer(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        reported: list[Any] = []
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        workers = ThreadWorkers(threads_max=1)
        answers: list[int] = []
        workers.submit(int, lambda *_: [][0])
        workers.submit(int, lambda *_: answers.append(1))
        await workers.close()
        assert answers == [1]
        assert [type(error) for error in reported] == [IndexError]

    run(main())


def test_closing_finishes_what_was_accepted_and_refuses_more(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        workers = ThreadWorkers(threads_max=2)
        answers: list[int | None] = []
        for _ in range(50):
            workers.submit(int, lambda result, _: answers.append(result))
        threads = list(workers._threads)
        await workers.close()
        await workers.close()
        assert answers == [0] * 50
        assert len(threads) == 2
        assert not any(thread.is_alive() for thread in threads)
        with pytest.raises(RuntimeError, match="closed"):
            workers.submit(int, lambda *_: None)

    run(main())


def test_a_cancelled_wait_forgets_the_answer_but_not_the_job(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        reported: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        workers = ThreadWorkers()
        go = threading.Event()
        done: list[int] = []

        def job() -> None:
            go.wait(10)
            done.append(1)

        waiting = asyncio.ensure_future(workers.run(job))
        await asyncio.sleep(0)
        waiting.cancel()
        go.set()
        await workers.close()
        assert done == [1]
        assert waiting.cancelled()
        assert reported == []

    run(main())
