"""A checkpoint round writes where logs end when it is over, not where they ended when it began.

Promise  everything below a recovery point was durable when it was written: recovery checks nothing there.
Found    a round between an append and its sync, then a power cut that tears the write: garbage below that point.
"""

from __future__ import annotations

from headpond.storage.commit import checkpoint_rounds
from simulation.ablations.planting import Patch, Scenario

BLIND = (
    "hardly ever: an append waits some ms for its sync, and a round comes once in half a second. Three things have to "
    "meet: a round that ends within these ms, a power cut before the sync, and a write that it tears."
)

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "consumers"),
    kinds=("crash at sync", "slow disk"),
    topics=("lasting",),
    partitions=2,
    configs=(("internal.segment.bytes", "2000"),),
)


def plant(patch: Patch) -> None:
    patch.set(checkpoint_rounds, "_recovery_point_of", lambda log: log.log_end_offset)
