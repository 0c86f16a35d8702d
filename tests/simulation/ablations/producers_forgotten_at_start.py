"""After a crash a log knows no producers, though its batches and snapshots tell of them.

Promise  a retry is never stored twice, also over a restart.
Found    a kill after the append and before the answer: the client sends the batch again.
"""

from __future__ import annotations

from headpond.storage.log import changes, log
from headpond.storage.producers.producers import ProducerStates
from headpond.storage.recovery.recovery import Recovered
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("idempotent",), kinds=("kill", "slow disk"), topics=("lasting",))


def plant(patch: Patch) -> None:
    adopt = changes.adopt

    def forgetful(partition_log: log.PartitionLog, recovered: Recovered) -> None:
        recovered.producers = ProducerStates(partition_log.tp)
        recovered.producers.end_offset = recovered.log_end_offset
        adopt(partition_log, recovered)

    patch.set(changes, "adopt", forgetful)
