"""Producer snapshots are written before the batches that they know are flushed, and believed above the recovery point.

Promise  a retry of a batch that was lost is stored, not taken for a duplicate.
Found    a round between an append and its sync, then a power cut: the snapshot knows a batch that is gone.
Besides  to believe such a snapshot alone breaks nothing: rounds write none that is ahead of the log.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headpond.ports import FileSystem
from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.commit.checkpoint_rounds import CheckpointRounds
from headpond.storage.folder import names
from headpond.storage.log.log import PartitionLog
from headpond.storage.log.segment_files import _write_snapshot, sync_folder
from headpond.storage.producers.producers import ProducerStates
from headpond.storage.recovery import recovery
from headpond.storage.recovery.recovery import FoundFolder
from simulation.ablations.planting import Patch, Scenario

BLIND = (
    "hardly ever: an append waits some ms for its sync, and a round comes once in half a second. The round has to "
    "begin within these ms, and the power to go before the sync."
)

SCENARIO = Scenario(workloads=("idempotent",), kinds=("crash at sync", "slow disk"), topics=("lasting",), partitions=1)


def plant(patch: Patch) -> None:
    load_snapshot, complete = patch.now(recovery, "load_snapshot"), CheckpointRounds._complete

    def trusting(fs: FileSystem, found: FoundFolder, producers: ProducerStates, *others: Any) -> Any:
        return load_snapshot(fs, replace(found, is_clean=True), producers, *others)

    async def hasty(self: CheckpointRounds, points: Any) -> bool:
        works = [point.work for point in points if point.work.snapshots and point.log.active is not None]
        await self._workers.run(_save_snapshots, self._fs, works)
        return await complete(self, points)

    patch.set(recovery, "load_snapshot", trusting)
    patch.set(CheckpointRounds, "_complete", hasty)
    begin = log_checkpoint.begin

    def with_snapshot(log: PartitionLog, *, closing: bool = False) -> Any:
        if log.active is not None and not closing:
            log_checkpoint.take_snapshot(log)
        return begin(log, closing=closing)

    patch.set(log_checkpoint, "begin", with_snapshot)


def _save_snapshots(fs: FileSystem, works: list[Any]) -> None:
    for work in works:
        for offset, data in work.snapshots:
            _write_snapshot(fs, f"{work.path}/{names.file_name(offset, names.SNAPSHOT)}", data, sync=True)
        sync_folder(fs, work.path)
