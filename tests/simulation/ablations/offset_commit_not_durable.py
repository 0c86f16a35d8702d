"""An offset commit is answered when it is appended, before it is on disk.

Promise  a committed offset survives a power cut (headpond.flush=ack).
Found    a power cut between the answer and the sync: the group's offset goes back.
"""

from __future__ import annotations

from headpond.broker.coordinators.home import InternalTopic
from headpond.model.waits import Waiter
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import CrashAtOperation

SCENARIO = Scenario(
    workloads=("offsets",),
    topics=("lasting",),
    partitions=1,
    draw=one_after_the_other(
        lambda chance, at_s: CrashAtOperation(at_s, 0, keeps_power=False, only="sync"), gap_s=(0.0, 0.0), times=18
    ),
)


def plant(patch: Patch) -> None:
    def hasty(self: InternalTopic, partition: int, end_offset: int, waiter: Waiter) -> None:
        waiter.reached()

    patch.set(InternalTopic, "when_committed", hasty)
