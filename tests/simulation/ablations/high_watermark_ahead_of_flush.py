"""With headpond.flush=ack the high watermark follows the log's end, not what is flushed.

Promise  nothing is visible, and nothing acknowledged, that a power cut could take back.
Found    a power cut between the append and the sync.
"""

from __future__ import annotations

from typing import Any

from headpond.replication.partition import Partition
from headpond.storage.log.log import Appended
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("plain", "idempotent", "consumers"), kinds=("crash at sync",))


def plant(patch: Patch) -> None:
    append = Partition.append

    def hasty(self: Partition, *args: Any, **others: Any) -> Appended:
        appended = append(self, *args, **others)
        self._advance(self.log.log_end_offset)
        return appended

    patch.set(Partition, "append", hasty)
