"""A checkpoint round empties the journal before the logs' own files are synced.

Promise  what was acknowledged survives a power cut, also while one sync of the journal serves many logs.
Found    many partitions that are written at once, so that the journal is on, then a power cut soon after a round.
"""

from __future__ import annotations

from headpond.storage.commit.checkpoint_of_a_log import LogCheckpoint
from headpond.storage.commit.checkpoint_rounds import CheckpointRounds
from simulation.ablations.planting import Patch, Scenario, journal_soon

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "transactions v2"),
    kinds=("power cut", "slow disk", "crash at sync"),
    topics=("lasting",),
    partitions=4,
    tune=journal_soon,
)


def plant(patch: Patch) -> None:
    save = CheckpointRounds._save

    async def careless(self: CheckpointRounds, points: list[LogCheckpoint], *, everything: bool) -> list[LogCheckpoint]:
        return await save(self, points, everything=False)

    patch.set(CheckpointRounds, "_save", careless)
