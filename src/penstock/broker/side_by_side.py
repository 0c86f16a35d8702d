"""What a request wants of many partitions, so many of them at a time: they share flushes and files, and the loop turns
in between however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 100
"""Tasks of one request; to start them takes a millisecond or two."""


async def side_by_side(answer: Callable[[T], Awaitable[R]], wanted: Iterable[T]) -> list[R]:
    """The answers, in the order of what is wanted."""
    rest = iter(wanted)
    answers: list[R] = []
    while some := list(islice(rest, AT_ONCE)):
        answers += await asyncio.gather(*map(answer, some))
    return answers
