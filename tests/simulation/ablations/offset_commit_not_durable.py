"""An offset commit is answered when it is appended, before it is on disk.

Promise  a committed offset survives a power cut (headpond.flush=ack).
Found    a power cut between the answer and the sync: the group's offset goes back.
"""

from __future__ import annotations

from collections.abc import Callable

from headpond.broker.coordinators.home import InternalTopic
from headpond.model import BrokerError
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import PowerCut, SlowDisk

SCENARIO = Scenario(
    workloads=("offsets",),
    draw=one_after_the_other(
        lambda chance, at_s: SlowDisk(at_s, chance.uniform(0.1, 1.0), 1.5),
        lambda chance, at_s: PowerCut(at_s, 0.1),
        gap_s=(0.2, 1.2),
        times=8,
    ),
)


def plant(patch: Patch) -> None:
    def hasty(self: InternalTopic, partition: int, end_offset: int, done: Callable[[BrokerError | None], None]) -> None:
        done(None)

    patch.set(InternalTopic, "when_committed", hasty)
