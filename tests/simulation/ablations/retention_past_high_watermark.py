"""Retention takes segments with records above the high watermark.

Promise  retention never goes beyond the high watermark: what nobody has seen yet is not given up.
Found    records with old timestamps, and a sync that takes long, while retention runs.
"""

from __future__ import annotations

from typing import Any

from headpond.storage.log import retention
from simulation.ablations.planting import Patch, Scenario

BLIND = (
    "breaks nothing that a client sees: with one replica the flush follows, and the log start takes the high watermark "
    "along. Two replicas would show it."
)

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "consumers"),
    kinds=("clock jump", "slow disk", "power cut"),
    topics=("short",),
)


def plant(patch: Patch) -> None:
    doomed = retention.doomed

    def greedy(*args: Any, up_to_end_offset: int, **others: Any) -> Any:
        return doomed(*args, up_to_end_offset=1 << 62, **others)

    patch.set(retention, "doomed", greedy)
