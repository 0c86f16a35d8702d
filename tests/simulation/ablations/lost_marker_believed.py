"""Whatever a partition answers to a transaction's marker, its coordinator believes that it has it.

Promise  a transaction that was decided ends, on all its partitions.
Found    a marker that could not be written, because the disk was full or the group coordinator was still loading after
         a restart: the partition is unstable for ever, or offsets are pending for ever.
"""

from __future__ import annotations

from headpond.coordination.transactions import markers
from headpond.model import ErrorCode
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import FullDisk

SCENARIO = Scenario(
    workloads=("transactions", "transactions v2"),
    topics=("lasting",),
    partitions=4,
    draw=one_after_the_other(
        lambda chance, at_s: FullDisk(at_s, chance.randrange(1_000), 0.5), gap_s=(0.0, 0.0), times=15
    ),
)


def plant(patch: Patch) -> None:
    patch.set(markers, "DONE", frozenset(ErrorCode))
