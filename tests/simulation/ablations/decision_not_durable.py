"""EndTxn is answered, and markers are sent, before the decision is on disk.

Promise  a transaction that was said to be committed is never aborted.
Found    a power cut between the answer and the sync: the coordinator finds the transaction open, and aborts it.
"""

from __future__ import annotations

from headpond.broker.coordinators.home import InternalTopic
from headpond.model.waits import Waiter
from simulation.ablations.planting import Patch, Scenario, one_after_the_other, rare_rounds
from simulation.faults import CrashAtOperation

SCENARIO = Scenario(
    workloads=("transactions", "transactions v2"),
    topics=("lasting",),
    partitions=1,
    settings=(("transaction.state.log.num.partitions", "1"),),
    draw=one_after_the_other(
        lambda chance, at_s: CrashAtOperation(at_s, chance.randrange(3), keeps_power=False, only="sync"),
        gap_s=(0.0, 0.0),
        times=15,
    ),
    tune=rare_rounds,
)


def plant(patch: Patch) -> None:
    when_committed = InternalTopic.when_committed

    def hasty(self: InternalTopic, partition: int, end_offset: int, waiter: Waiter) -> None:
        if self._topic == "__transaction_state":
            waiter.reached()
        else:
            when_committed(self, partition, end_offset, waiter)

    patch.set(InternalTopic, "when_committed", hasty)
