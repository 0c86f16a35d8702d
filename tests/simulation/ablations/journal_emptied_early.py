"""A checkpoint round empties the journal before the logs' own files are synced.

Promise  what was acknowledged survives a power cut, also while one sync of the journal serves many logs.
Found    many partitions that are written at once, so that the journal is on, then a power cut soon after a round.
"""

from __future__ import annotations

from headpond.storage.commit.checkpoint_of_a_log import LogCheckpoint
from headpond.storage.commit.checkpoint_rounds import CheckpointRounds
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import PowerCut, SlowDisk

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "transactions", "transactions v2"),
    partitions=16,
    topics=("lasting", "passing"),
    draw=one_after_the_other(
        lambda chance, at_s: SlowDisk(at_s, 0.8, 6.0),
        lambda chance, at_s: PowerCut(at_s, 0.1),
        gap_s=(2.5, 5.0),
        times=3,
    ),
)


def plant(patch: Patch) -> None:
    save = CheckpointRounds._save

    async def careless(self: CheckpointRounds, points: list[LogCheckpoint], *, everything: bool) -> list[LogCheckpoint]:
        return await save(self, points, everything=False)

    patch.set(CheckpointRounds, "_save", careless)
