"""An answer leaves when it is ready, before those to earlier requests of its connection.

Promise  responses leave a connection in the order of its requests.
Found    several requests on their way on one connection that take different times.
"""

from __future__ import annotations

from headpond.broker.net.answering import Answering
from headpond.broker.net.slots import Slot
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("plain", "idempotent", "transactions v2"), kinds=("slow disk", "cold cache"))


def plant(patch: Patch) -> None:
    slot_completed = Answering.slot_completed

    def hasty(self: Answering, slot: Slot) -> None:
        if slot in self._slots:
            self._slots.remove(slot)
            self._slots.appendleft(slot)
        slot_completed(self, slot)

    patch.set(Answering, "slot_completed", hasty)
