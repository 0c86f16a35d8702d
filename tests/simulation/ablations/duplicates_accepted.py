"""An idempotent producer's batch that is stored already is stored once more.

Promise  a retry is never stored twice.
Found    an answer that gets lost: the client sends the batch again.
"""

from __future__ import annotations

from headpond.protocol.records.header import BatchHeader
from headpond.storage.producers.producers import ProducerStates
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("idempotent",), kinds=("cut", "kill", "pause", "slow disk"), topics=("lasting",))


def plant(patch: Patch) -> None:
    check = ProducerStates.check

    def forgetful(self: ProducerStates, header: BatchHeader) -> None:
        check(self, header)

    patch.set(ProducerStates, "check", forgetful)
