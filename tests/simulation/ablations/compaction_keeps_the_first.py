"""Compaction keeps the first value of a key in the dirty part, not the last.

Promise  a compacted log keeps the last value of each key.
Found    a few keys that are written again and again.
"""

from __future__ import annotations

from headpond.storage.compaction.key_map import KeyMap
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(
    workloads=("plain", "idempotent"),
    topics=("compacted",),
    partitions=4,
    configs=(("internal.segment.bytes", "1000"),),
    settings=(("log.cleaner.backoff.ms", "300"),),
)


def plant(patch: Patch) -> None:
    add = KeyMap.add

    def stubborn(self: KeyMap, keys: list[bytes | None], tombstones: list[int]) -> None:
        before = dict(self._latest)
        add(self, keys, tombstones)
        self._latest.update(before)

    patch.set(KeyMap, "add", stubborn)
