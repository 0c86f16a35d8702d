"""OffsetDelete changes memory at once and writes no record: the live path does what a replay will not do.

Promise  only ``replay`` changes a coordinator's state, so that a restart finds what clients were told.
Found    a deletion of offsets, then a restart: they are back.
"""

from __future__ import annotations

from headpond.coordination.groups.offsets import OffsetStore
from headpond.coordination.runtime import Decision
from headpond.protocol.schema.classic_group_records import OffsetCommitKey
from headpond.protocol.schema.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("offsets",), kinds=("kill", "stop"))


def plant(patch: Patch) -> None:
    delete = OffsetStore.delete

    def direct(self: OffsetStore, request: OffsetDeleteRequest) -> Decision[OffsetDeleteResponse]:
        decision = delete(self, request)
        for record in decision.records:
            assert isinstance(record.key, OffsetCommitKey)
            self.replay(record.key, None, None)
        return Decision(decision.answer)

    patch.set(OffsetStore, "delete", direct)
