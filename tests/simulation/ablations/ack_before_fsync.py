"""A produce with acks=all is answered when it is appended, before anything is on disk.

Promise  with headpond.flush=ack what was acknowledged survives a power cut.
Found    a power cut between the answer and the sync; a slow disk makes that time longer.
"""

from __future__ import annotations

from typing import Any

from headpond.broker.handlers.produce.produce import LONG_WAY, ProduceHandler
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("plain", "idempotent"), kinds=("crash at sync",))


def plant(patch: Patch) -> None:
    append = ProduceHandler.append

    def hasty(self: ProduceHandler, *args: Any) -> Any:
        results, _ = append(self, *args)
        return results, []

    patch.set(ProduceHandler, "append", hasty)
    patch.set(ProduceHandler, "_append_quickly", lambda *args: LONG_WAY)
