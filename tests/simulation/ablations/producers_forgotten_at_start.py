"""After a crash a log knows no producers, though its batches and snapshots tell of them.

Promise  a retry is never stored twice, also over a restart.
Found    a kill after the append and before the answer: the client sends the batch again.
"""

from __future__ import annotations

from headpond.storage.log import changes, log
from headpond.storage.producers.producers import ProducerStates
from headpond.storage.recovery.recovery import Recovered
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import Kill, SlowDisk

SCENARIO = Scenario(
    workloads=("idempotent",),
    topics=("lasting",),
    partitions=1,
    draw=one_after_the_other(
        lambda chance, at_s: SlowDisk(at_s, 0.1, 0.6), lambda chance, at_s: Kill(at_s, 0.1), gap_s=(0.2, 0.5), times=12
    ),
)


def plant(patch: Patch) -> None:
    adopt = changes.adopt

    def forgetful(partition_log: log.PartitionLog, recovered: Recovered) -> None:
        recovered.producers = ProducerStates(partition_log.tp)
        recovered.producers.end_offset = recovered.log_end_offset
        adopt(partition_log, recovered)

    patch.set(changes, "adopt", forgetful)
