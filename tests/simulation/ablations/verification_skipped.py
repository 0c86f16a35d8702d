"""A transactional batch is appended without asking the coordinator whether its transaction is open (KIP-890).

Promise  a batch that comes late, after its transaction has ended, does not open another one that nobody ends.
Found    a produce that is delayed on its way until its transaction is aborted: the partition is unstable for ever.
"""

from __future__ import annotations

from headpond.broker.handlers.produce.transactional import ProduceTransactions
from simulation.ablations.planting import Patch, Scenario

BLIND = (
    "where the coordinator aborts, the epoch that it raises fences the late batch as well. A client of version 1 that "
    "aborts by itself would show it, if it gave a batch up instead of sending it again: ours does not."
)

SCENARIO = Scenario(workloads=("transactions",), kinds=("stall", "cut"), topics=("lasting",), partitions=1)


def plant(patch: Patch) -> None:
    patch.set(ProduceTransactions, "checks", lambda self, version: False)
