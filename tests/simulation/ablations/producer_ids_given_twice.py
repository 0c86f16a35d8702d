"""A broker that starts hands out the producer ids of the block that it had before.

Promise  no producer id is handed out twice: its first batches would be taken for another's.
Found    a restart, and producers before and after it that write to one partition.
"""

from __future__ import annotations

from headpond.cluster.producer_ids import BLOCK_SIZE, ProducerIds
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("idempotent",), kinds=("kill", "stop"), topics=("lasting", "passing"), partitions=6)


def plant(patch: Patch) -> None:
    take_block = ProducerIds._take_block

    async def same_block(self: ProducerIds, *, above: int = -1) -> tuple[int, int]:
        first, end = await take_block(self, above=above)
        return first % BLOCK_SIZE, end

    patch.set(ProducerIds, "_take_block", same_block)
