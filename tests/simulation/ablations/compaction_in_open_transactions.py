"""Compaction goes up to the high watermark, through transactions that are still open.

Promise  a compacted log keeps the last *committed* value of each key: what is open may be aborted.
Found    a transaction that is open for some seconds while its segment is cleaned, and aborted then: the value before
         it is gone.
"""

from __future__ import annotations

from headpond.storage.compaction import compactor
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(
    workloads=("transactions v2",),
    topics=("compacted",),
    partitions=4,
    configs=(("internal.segment.bytes", "2000"), ("segment.ms", "300")),
    settings=(("log.cleaner.backoff.ms", "300"),),
)


def plant(patch: Patch) -> None:
    patch.set(compactor, "_last_stable_offset", lambda log: log.committed_end_offset())
