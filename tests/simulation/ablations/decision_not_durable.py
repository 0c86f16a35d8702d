"""EndTxn is answered, and markers are sent, before the decision is on disk.

Promise  a transaction that was said to be committed is never aborted.
Found    a power cut between the answer and the sync: the coordinator finds the transaction open, and aborts it.
"""

from __future__ import annotations

from headpond.broker.coordinators.home import InternalTopic
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("transactions", "transactions v2"), kinds=("crash at sync",))


def plant(patch: Patch) -> None:
    committed = InternalTopic.committed

    async def hasty(self: InternalTopic, partition: int, end_offset: int) -> None:
        if self._topic != "__transaction_state":
            await committed(self, partition, end_offset)

    patch.set(InternalTopic, "committed", hasty)
