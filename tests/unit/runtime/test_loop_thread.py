"""A loop in a thread: results, errors, time-outs, and work that goes on between calls."""

from __future__ import annotations

import asyncio
import threading

import pytest

from headpond.runtime.loop_thread import LoopThread


async def twice(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def fail() -> None:
    raise ValueError("no")


def test_a_call_returns_and_raises_what_the_coroutine_does() -> None:
    with LoopThread("test") as loop:
        assert loop.call(twice(4)) == 8
        with pytest.raises(ValueError, match="no"):
            loop.call(fail())
        assert loop.call(twice(5)) == 10


def test_work_goes_on_between_calls() -> None:
    done = threading.Event()

    async def start() -> None:
        asyncio.get_running_loop().call_later(0.001, done.set)

    with LoopThread("test") as loop:
        loop.call(start())
        assert done.wait(30)


def test_a_call_that_takes_too_long_is_cancelled_and_has_ended() -> None:
    ended = threading.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with LoopThread("test") as loop:
        with pytest.raises(TimeoutError):
            loop.call(hang(), 0.01)
        assert ended.is_set()


def test_closing_twice_does_nothing() -> None:
    loop = LoopThread("test")
    loop.close()
    loop.close()
