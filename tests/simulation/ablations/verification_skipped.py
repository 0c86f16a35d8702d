"""A transactional batch is appended without asking the coordinator whether its transaction is open (KIP-890).

Promise  a batch that comes late, after its transaction has ended, does not open another one that nobody ends.
Found    a produce that is delayed on its way until its transaction is aborted: the partition is unstable for ever.
"""

from __future__ import annotations

from headpond.broker.handlers.produce.transactional import ProduceTransactions
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(
    workloads=("transactions",),
    kinds=("stall",),
    topics=("lasting",),
    partitions=1,
)


def plant(patch: Patch) -> None:
    patch.set(ProduceTransactions, "checks", lambda self, version: False)
