"""Checkpoint rounds do not write transaction indexes: below the recovery point nothing else tells what was aborted.

Promise  who reads committed never sees a record of an aborted transaction, after a restart neither.
Found    an aborted transaction, a round, a kill, and a reader.
"""

from __future__ import annotations

from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.folder import names
from headpond.storage.log.log import PartitionLog
from headpond.storage.log.segment import Segment
from headpond.storage.log.segment_files import Tail
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("transactions", "transactions v2", "consumers"), kinds=("kill", "stop", "power cut"))


def plant(patch: Patch) -> None:
    tails = log_checkpoint._tails

    def some_tails(log: PartitionLog, segment: Segment) -> list[Tail]:
        return [tail for tail in tails(log, segment) if not tail.name.endswith(names.TXN_INDEX)]

    patch.set(log_checkpoint, "_tails", some_tails)
