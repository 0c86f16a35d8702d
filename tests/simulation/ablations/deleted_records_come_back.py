"""DeleteRecords does not write the new log start before it answers.

Promise  records that were deleted on request do not come back.
Found    a deletion, then a kill or a power cut before the next round.
"""

from __future__ import annotations

from headpond.storage.commit.checkpoint_rounds import CheckpointRounds
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import Kill

SCENARIO = Scenario(
    workloads=("plain", "consumers", "admin"),
    topics=("short", "passing"),
    partitions=1,
    draw=one_after_the_other(lambda chance, at_s: Kill(at_s, 0.05), gap_s=(0.0, 0.0), times=18),
)


def plant(patch: Patch) -> None:
    async def nothing(self: CheckpointRounds) -> None:
        pass

    patch.set(CheckpointRounds, "_write_log_starts", nothing)
