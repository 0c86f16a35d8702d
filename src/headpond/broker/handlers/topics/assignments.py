"""Brokers that a request assigns a partition to by hand."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK

IDS_AT_ONCE = 2_000


async def assigned(ctx: Context, broker_ids: Sequence[int]) -> tuple[int, ...]:
    """What the metadata writer needs to know of them. In a list longer than there are brokers, one is unknown or comes
    twice; the smallest tell which, as they are looked at in their order."""
    enough = len(ctx.broker.image.brokers) + 1
    if len(broker_ids) <= enough:
        return tuple(broker_ids)
    smallest: list[int] = []
    async for some in ctx.in_parts(broker_ids, IDS_AT_ONCE, A_LOOK):
        smallest = nsmallest(enough, [*smallest, *some])
    return tuple(smallest)
