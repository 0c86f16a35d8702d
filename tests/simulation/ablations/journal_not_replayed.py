"""A start throws the journal away instead of taking it in.

Promise  what was acknowledged survives a power cut, also while one sync of the journal serves many logs.
Found    many partitions that are written at once, so that the journal is on, then a power cut.
"""

from __future__ import annotations

from typing import Any

from headpond.storage import manager
from simulation.ablations.planting import Patch, Scenario, journal_soon

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "transactions v2"),
    kinds=("power cut", "slow disk", "crash at sync"),
    topics=("lasting", "passing"),
    partitions=6,
    tune=journal_soon,
)


def plant(patch: Patch) -> None:
    take_in = patch.now(manager, "take_in")

    async def throw_away(*args: Any, is_clean: bool, **others: Any) -> None:
        await take_in(*args, is_clean=True, **others)

    patch.set(manager, "take_in", throw_away)
