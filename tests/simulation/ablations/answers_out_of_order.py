"""An answer leaves when it is ready, before those to earlier requests of its connection.

Promise  responses leave a connection in the order of its requests.
Found    several requests on their way on one connection that take different times.
"""

from __future__ import annotations

from headpond.broker.net.answering import Answering
from headpond.broker.net.slots import Slot
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import SlowDisk

SCENARIO = Scenario(
    workloads=("idempotent", "members"),
    draw=one_after_the_other(lambda chance, at_s: SlowDisk(at_s, 0.3, 1.0), gap_s=(0.0, 0.0), times=12),
)


def plant(patch: Patch) -> None:
    slot_completed = Answering.slot_completed

    def hasty(self: Answering, slot: Slot) -> None:
        if slot in self._slots:
            self._slots.remove(slot)
            self._slots.appendleft(slot)
        slot_completed(self, slot)

    patch.set(Answering, "slot_completed", hasty)
