"""What looks at every log does so a little at a time: there may be tens of thousands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

LOGS_PER_SLICE = 100
"""So many, and the loop turns: a few milliseconds."""


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """Those that there are now."""
    for number, item in enumerate(list(items), 1):
        yield item
        if not number % LOGS_PER_SLICE:
            await asyncio.sleep(0)
