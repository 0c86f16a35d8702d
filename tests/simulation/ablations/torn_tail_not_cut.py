"""Recovery leaves a torn batch where it is: memory says that the log ends before it, the file says otherwise.

Promise  a log holds whole batches, one behind the other; what was acknowledged stays readable.
Found    a power cut that tears a write: what follows lands behind the rest, where no index finds it, and the next
         recovery gives it up.
"""

from __future__ import annotations

from typing import Any

from headpond.ports import File, FileSystem
from headpond.storage.recovery import recovery
from headpond.storage.recovery.recovery import FoundFolder, Recovered, RecoveredSegment
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("plain", "idempotent"), kinds=("crash at sync", "failed write"))


def plant(patch: Patch) -> None:
    scan_one = recovery._scan_one

    def scan_and_leave(
        fs: FileSystem, found: FoundFolder, log: Recovered, file: File, *others: Any
    ) -> RecoveredSegment:
        file.truncate = lambda size: None  # type: ignore[method-assign]
        return scan_one(fs, found, log, file, *others)

    patch.set(recovery, "_scan_one", scan_and_leave)
