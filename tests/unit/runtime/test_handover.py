"""What threads give to a loop, and what they wait for there."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from headpond.runtime.handover import Handover, Reply, Returns, Waiters
from headpond.runtime.loop_thread import LoopThread
from support.waiting import DEADLINE_S, eventually


def test_everything_that_threads_put_is_taken_once_and_in_each_thread_s_order() -> None:
    taken: list[tuple[int, int]] = []
    with LoopThread("test") as thread:

        def take() -> None:
            while (item := handover.next()) is not None:
                taken.append(item)

        handover: Handover[tuple[int, int]] = Handover(thread, take)
        with ThreadPoolExecutor(4) as pool:
            for number in range(4):
                pool.submit(lambda number=number: [handover.put((number, at)) for at in range(2_000)])  # type: ignore
        eventually(lambda: len(taken) == 8_000)
    for number in range(4):
        assert [at for one, at in taken if one == number] == list(range(2_000))


def test_a_closed_handover_takes_nothing_and_keeps_what_it_has() -> None:
    with LoopThread("test") as thread:
        handover: Handover[str] = Handover(thread, lambda: None)
        assert handover.put("first", "second")
        handover.close()
        assert not handover.put("third")
        assert (handover.peek(), handover.next(), handover.next(), handover.next()) == (
            "first",
            "first",
            "second",
            None,
        )


def test_a_reply_is_a_value_or_an_exception_made_for_whoever_waits() -> None:
    given: Reply[int] = Reply()
    threading.Timer(0.01, given.give, (5,)).start()
    assert given.wait() == 5
    failed: Reply[int] = Reply()
    failed.fail(lambda: ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        failed.wait()


def test_waiters_are_woken_until_what_they_wait_for_is_there() -> None:
    waiters, reached = Waiters(), [0]
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(waiters.wait, lambda: reached[0] >= 3, None) for _ in range(3)]
        for number in range(1, 4):
            reached[0] = number
            waiters.wake()
        assert [one.result(DEADLINE_S) for one in waiting] == [True] * 3
    assert not waiters.wait(lambda: False, 0.01)
    assert not waiters._waiting, "nobody is left in the queue"


def test_what_is_let_go_of_is_undone_on_the_loop_and_after_its_end_wherever_it_is() -> None:
    undone: list[tuple[str, bool]] = []
    with LoopThread("test") as thread:
        returns: Returns[str] = Returns(thread.call_soon, lambda item: undone.append((item, thread.is_here)))
        returns.put("first")
        eventually(lambda: undone == [("first", True)])
    returns.put("second")
    assert undone == [("first", True)]
    returns.end()
    returns.put("third")
    assert undone[1:] == [("second", False), ("third", False)]
