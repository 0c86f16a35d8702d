"""Recovery believes every batch whose header looks right: a torn write becomes records.

Promise  a log holds what was sent, and nothing else; what a crash tore is cut off.
Found    a power cut that tears the last write of a log: garbage is read, or a reader stumbles over it.
"""

from __future__ import annotations

from headpond.storage.recovery import scan
from simulation.ablations.planting import Patch, Scenario, one_after_the_other, rare_rounds
from simulation.faults import CrashAtOperation

SCENARIO = Scenario(
    workloads=("plain", "idempotent"),
    topics=("lasting",),
    partitions=1,
    draw=one_after_the_other(
        lambda chance, at_s: CrashAtOperation(at_s, chance.randrange(3), keeps_power=False, only="sync"),
        gap_s=(0.0, 0.0),
        times=18,
    ),
    tune=rare_rounds,
)


class _AnyCrc:
    def __ne__(self, other: object) -> bool:
        return False


def plant(patch: Patch) -> None:
    patch.set(scan, "crc32c", lambda data: _AnyCrc())
