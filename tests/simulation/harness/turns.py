"""Turns of the loop, for tests in which time stands still."""

from __future__ import annotations

import asyncio


async def settle(turns: int = 100) -> None:
    """Everybody gets on as far as is possible now, without time passing."""
    for _ in range(turns):
        await asyncio.sleep(0)
