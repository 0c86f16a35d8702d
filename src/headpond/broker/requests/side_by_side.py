"""What a request wants of many partitions, so many of them at a time: they share flushes and files, and the loop is
free in between however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from itertools import islice
from typing import TypeVar

from headpond.coordination.slices import Slices

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 100
"""Tasks of one request; to start them takes a millisecond or two. Then it is the turn of other work in slices."""


async def side_by_side(
    answer: Callable[[T], Awaitable[R]], wanted: Iterable[T], slices: Slices
) -> AsyncIterator[tuple[T, R]]:
    """What is wanted, each with its answer, in order."""
    rest = iter(wanted)
    some = list(islice(rest, AT_ONCE))
    while some:
        for each in zip(some, await asyncio.gather(*map(answer, some)), strict=True):
            yield each
        some = list(islice(rest, AT_ONCE))
        if some:
            await slices.turn()
