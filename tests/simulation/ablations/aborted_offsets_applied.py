"""The offsets of a transaction count whether it is committed or aborted.

Promise  offsets in a transaction are committed with it, or not at all.
Found    an aborted transaction with offsets; a copy of a topic then misses records.
"""

from __future__ import annotations

from headpond.coordination.groups.offsets import OffsetStore
from headpond.coordination.home import Ended
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("transactions", "transactions v2", "copying"))


def plant(patch: Patch) -> None:
    replay_end = OffsetStore.replay_end

    def applying(self: OffsetStore, ended: Ended) -> None:
        replay_end(self, ended._replace(is_commit=True))

    patch.set(OffsetStore, "replay_end", applying)
