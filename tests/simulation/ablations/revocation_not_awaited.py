"""A member of a consumer group counts as having given up what it was told to, before it says so (KIP-848).

Promise  a partition has one owner at any time.
Found    a member that learns late what it has to give up, on a slow link, while another one gets it.
"""

from __future__ import annotations

from headpond.coordination.groups.consumer import reconciliation
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("consumer members",), kinds=("slow link", "cut", "pause client"))


def plant(patch: Patch) -> None:
    patch.set(reconciliation, "_still_owns", lambda owned, held: False)
