"""A checkpoint round writes where logs end when it is over, not where they ended when it began.

Promise  everything below a recovery point was durable when it was written: recovery checks nothing there.
Found    a round between an append and its sync, then a power cut that tears the write: garbage below that point.
"""

from __future__ import annotations

from headpond.storage.commit import checkpoint_rounds
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import PowerCut, SlowDisk

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "consumers"),
    topics=("lasting", "passing"),
    partitions=3,
    configs=(("internal.segment.bytes", "2000"),),
    draw=one_after_the_other(
        lambda chance, at_s: SlowDisk(at_s, chance.uniform(0.3, 1.0), 2.5),
        lambda chance, at_s: PowerCut(at_s, 0.1),
        gap_s=(0.7, 2.0),
        times=6,
    ),
)


def plant(patch: Patch) -> None:
    patch.set(checkpoint_rounds, "_recovery_point_of", lambda log: log.log_end_offset)
