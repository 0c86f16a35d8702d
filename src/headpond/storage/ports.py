"""What the logs of a data folder need from the world."""

from __future__ import annotations

from dataclasses import dataclass

from headpond.ports import Clock, FileSystem, Processes, Random, Syncer, Tasks, Workers


@dataclass(frozen=True, slots=True)
class StoragePorts:
    fs: FileSystem
    clock: Clock
    workers: Workers
    tasks: Tasks
    random: Random
    processes: Processes | None = None  # without it nothing is compacted, and large batches are looked into by threads
    syncer: Syncer | None = None  # without it workers sync
    lookers: Workers | None = None  # threads for looks into records; without them those share ``workers``
