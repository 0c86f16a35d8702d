"""After a write that failed, what it left of the batch stays in the file.

Promise  a log holds whole batches; a failed append leaves nothing behind.
Found    a full disk or a failed write, then an append that works, then a read or a restart.
"""

from __future__ import annotations

from headpond.storage.log import changes
from headpond.storage.log.log import PartitionLog
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("plain", "idempotent", "consumers"), kinds=("failed write", "full disk", "kill"))


def plant(patch: Patch) -> None:
    async def nothing(log: PartitionLog) -> None:
        log.is_torn = False

    patch.set(changes, "repair", nothing)
