"""The coordinator does not abort transactions whose time is over.

Promise  a transaction that nobody ends is aborted after its time-out, so that read_committed goes on.
Found    a producer that vanishes in a transaction.
"""

from __future__ import annotations

from headpond.coordination.transactions.upkeep import Upkeep
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("transactions", "transactions v2"), topics=("lasting",), partitions=3)


def plant(patch: Patch) -> None:
    patch.set(Upkeep, "_is_late", lambda self, each: False)
