"""A sync that fails counts as one that worked.

Promise  what was acknowledged survives a power cut; a failed sync gives the data folder up (fsyncgate).
Found    a failed sync, and a power cut some time later: its pages were never written.
"""

from __future__ import annotations

from collections.abc import Sequence

from headpond.ports import Clock, File, FileSystem
from headpond.storage.commit import group_commit
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("plain", "idempotent"), kinds=("failed sync", "power cut"))


def plant(patch: Patch) -> None:
    sync = group_commit._sync

    def forgiving(fs: FileSystem, clock: Clock, folder: str | None, files: Sequence[File]) -> tuple[bool, float]:
        try:
            return sync(fs, clock, folder, files)
        except OSError:
            return False, 0.0

    patch.set(group_commit, "_sync", forgiving)
