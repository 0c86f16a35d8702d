"""A coordinator that starts sends no markers for what was decided before and not ended.

Promise  a transaction that was decided ends, whatever crashes in between.
Found    a kill between the decision and its markers: the id stays busy, the partitions unstable.
"""

from __future__ import annotations

from headpond.coordination.transactions.completion import Completion
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("transactions", "transactions v2"), kinds=("kill", "crash at operation", "slow disk"))


def plant(patch: Patch) -> None:
    patch.set(Completion, "resume", lambda self: None)
