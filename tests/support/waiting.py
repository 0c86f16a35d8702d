"""Waiting until something is true, up to a generous deadline: time itself decides nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

DEADLINE_S = 30.0
"""Long enough for a loaded machine with two cores: reaching it means that the condition will not come true."""


def eventually(
    condition: Callable[[], T],
    *,
    what: str | Callable[[], str] = "the condition",
    deadline_s: float = DEADLINE_S,
    retry_on: tuple[type[BaseException], ...] = (),
) -> T:
    """The first truthy value of ``condition``; ``AssertionError`` naming ``what`` when the deadline passes."""
    until = time.monotonic() + deadline_s
    last_error: BaseException | None = None
    while True:
        try:
            value = condition()
            last_error = None
            if value:
                return value
        except retry_on as error:
            last_error = error
        if time.monotonic() >= until:
            text = what() if callable(what) else what
            raise AssertionError(f"waited {deadline_s} s for {text}") from last_error
        time.sleep(0.01)
