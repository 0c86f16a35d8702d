"""Compaction takes the records of an aborted transaction for values.

Promise  a compacted log keeps the last *committed* value of each key.
Found    an aborted transaction that is the last to write a key.
"""

from __future__ import annotations

from headpond.storage.compaction import cleaner
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(
    workloads=("plain", "transactions", "transactions v2"),
    topics=("lasting", "compacted"),
    partitions=1,
    configs=(("internal.segment.bytes", "2000"), ("segment.ms", "1000")),
    settings=(("log.cleaner.backoff.ms", "300"),),
)


def plant(patch: Patch) -> None:
    patch.set(cleaner._Aborted, "has", lambda self, header: False)
