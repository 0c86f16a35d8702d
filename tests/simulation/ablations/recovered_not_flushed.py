"""What recovery reads back counts as durable, though it may be in the page cache only.

Promise  what was acknowledged, or seen by a consumer, survives a power cut.
Found    a kill before the sync, and a power cut soon after the restart: in between the records are visible, and a retry
         is answered as a duplicate.
"""

from __future__ import annotations

from headpond.storage.recovery import recovery
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import CrashAtOperation, PowerCut

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "consumers"),
    topics=("lasting",),
    partitions=3,
    draw=one_after_the_other(
        lambda chance, at_s: CrashAtOperation(at_s, chance.randrange(3), keeps_power=True, only="sync"),
        lambda chance, at_s: PowerCut(at_s, 0.1),
        gap_s=(0.6, 1.3),
        times=9,
    ),
)


def plant(patch: Patch) -> None:
    patch.set(recovery, "sync_file", lambda file: None)
    patch.set(recovery, "sync_folder", lambda fs, path: None)
