"""Something is done again and again while a block runs, and not after it."""

from __future__ import annotations

import pytest

from headpond.runtime.timer_thread import repeating
from support.waiting import eventually


def test_it_goes_on_while_the_block_runs_and_ends_with_it() -> None:
    calls: list[int] = []
    with pytest.raises(KeyboardInterrupt), repeating(lambda: calls.append(1), 0.001):
        eventually(lambda: len(calls) > 2)
        raise KeyboardInterrupt
    count = len(calls)
    with repeating(lambda: None, 0.001):  # another one takes its time: the first is not heard of any more
        pass
    assert len(calls) == count
