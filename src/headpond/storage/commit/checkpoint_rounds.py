"""Checkpoint rounds: move the recovery points of the logs that changed, so that a crash costs little scanning.

A round takes place half a second after a log changed, when one has grown by 24 MiB, or when appends wait for it, which
keeps what recovery has to read below 64 MiB of each log. Recovery relies on its order:

    1  note index tails, epochs, snapshots and the log end of each changed log, at one moment
    2  wait until that log end is flushed
    3  write and sync the notes        (a crash up to here: the old recovery points, and some files that are ahead)
    4  write the recovery points       (atomically)

Idle logs cost nothing: only those that changed are looked at. A full disk postpones a round and loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from headpond.model import StorageFailed, TopicPartition
from headpond.ports import Clock, FileSystem, Workers
from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.commit.checkpoint_of_a_log import LogCheckpoint
from headpond.storage.commit.group_commit import SYNC_ALL_FROM_LOGS, GroupCommit
from headpond.storage.commit.journal import Journal, JournalFile
from headpond.storage.folder import names
from headpond.storage.folder.checkpoint_files import encode_offsets
from headpond.storage.log.log import PartitionLog
from headpond.storage.log.segment_files import Housekeeping, SyncFailed, prune_snapshots, save
from headpond.storage.slices import in_slices

_log = logging.getLogger(__name__)

INTERVAL_S = 0.5
"""How long a change may wait: half a second of one-record batches is scanned in a tenth of a second."""
HIGH_WATERMARKS_INTERVAL_S = 5.0


class CheckpointRounds:
    def __init__(
        self,
        *,
        data_dir: str,
        fs: FileSystem,
        clock: Clock,
        workers: Workers,
        commits: GroupCommit,
        journal: Journal,
        logs: Mapping[TopicPartition, PartitionLog],
    ) -> None:
        self._data_dir = data_dir
        self._fs = fs
        self._clock = clock
        self._workers = workers
        self._commits = commits
        self._journal = journal
        self._logs = logs
        self._changed: dict[PartitionLog, None] = {}
        self.touched: dict[PartitionLog, None] = {}  # since the folder was opened
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []  # for the end of the next round
        self._log_starts: dict[TopicPartition, int] | None = None  # as the file has them; None: not known
        self._noted: dict[str, set[TopicPartition]] = {}  # by file: the partitions that it may name
        self._points_on_disk: dict[TopicPartition, int] = {}  # at least; a write that fails may have happened
        self._cleaned: dict[TopicPartition, int] = {}  # where the last compaction of each log ended
        self._high_watermarks_due = 0.0

    def changed(self, log: PartitionLog) -> None:
        """``log`` wants a place in the next round."""
        self._changed[log] = None
        self.touched[log] = None
        self._wake.set()

    def found(
        self,
        recovery_points: Mapping[TopicPartition, int],
        log_starts: Iterable[TopicPartition],
        cleaned_offsets: Mapping[TopicPartition, int],
    ) -> None:
        """At start: what the files say."""
        self._noted = {
            names.RECOVERY_POINTS: set(recovery_points),
            names.LOG_STARTS: set(log_starts),
            names.CLEANED_OFFSETS: set(cleaned_offsets),
        }
        self._points_on_disk = dict(recovery_points)
        self._cleaned = dict(cleaned_offsets)

    def hurry(self) -> None:
        self._hurry.set()

    async def checkpointed(self, log: PartitionLog) -> None:
        """Wait for a round that ``log`` has a place in; whether it worked out is seen in the log."""
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(reached)
        self.changed(log)
        self.hurry()
        await reached

    def forget(self, log: PartitionLog) -> None:
        self._changed.pop(log, None)
        self.touched.pop(log, None)
        if self._logs.get(log.tp, log) is log:  # not another topic's of the same name
            self._points_on_disk.pop(log.tp, None)
            self._cleaned.pop(log.tp, None)

    def recovery_point_on_disk(self, log: PartitionLog) -> int:
        """Recovery will look for holes no earlier than here, whatever happens."""
        return min(log.recovery_point, self._points_on_disk.get(log.tp, 0))

    def cleaned_end_offset(self, log: PartitionLog) -> int | None:
        """Where the last compaction of ``log`` ended."""
        return self._cleaned.get(log.tp)

    async def save_cleaned_end_offset(self, log: PartitionLog, offset: int, truncations: int) -> None:
        """A compaction that began when the log had been truncated so many times has ended there. If that can't be
        written, the log is compacted once more after the next start."""
        async with self._lock:
            if self._logs.get(log.tp) is log and log.truncations == truncations and not log.is_being_cut:
                self._cleaned[log.tp] = offset
                await self._write_cleaned_offsets()

    async def run(self) -> None:
        """For ever: a round soon after each change."""
        waiting: list[asyncio.Future[None]] = []
        try:
            while True:
                await self._wake.wait()
                timer = self._clock.call_later(INTERVAL_S, self._hurry.set)
                await self._hurry.wait()
                timer.cancel()
                self._hurry.clear()
                self._wake.clear()
                waiting, self._waiting = self._waiting, []
                await self.round()
                _tell(waiting)
                if self._changed:
                    self._wake.set()
        finally:
            _tell(waiting + self._waiting)

    async def round(self) -> None:
        async with self._lock:
            logs, self._changed = self._changed, {}
            points: list[LogCheckpoint] = []
            async for log in in_slices(logs):
                if log.is_being_cut or log.is_held:
                    self._changed[log] = None
                elif not log.is_closed and log.failure is None and self._commits.failed is None:
                    points.append(log_checkpoint.begin(log))
            if points:
                await self._complete(points)

    async def close(self) -> bool:
        """The last round, of every log that was touched. False: not everything could be written."""
        async with self._lock:
            damaged = [log for log in self.touched if log.is_interrupted or log.failure is not None]
            points = [log_checkpoint.begin(log, closing=True) for log in self.touched if log not in damaged]
            self._high_watermarks_due = 0.0
            return await self._complete(points) and not damaged

    async def lower_recovery_point(self, log: PartitionLog, offset: int) -> None:
        """Before a log is cut: durable when it returns."""
        async with self._lock:
            if log.recovery_point > offset:
                log.recovery_point = offset
                await self._write_recovery_points()
            if self._cleaned.get(log.tp, offset) > offset:
                # What comes behind the cut is dirty, or its tombstones might go before what they delete.
                self._cleaned[log.tp] = offset
                await self._write_cleaned_offsets()

    async def leave_journal(self, log: PartitionLog) -> None:
        """Before ``log``, which takes no appends now, is cut: it must not get back from there what it loses. Durable
        when it returns."""
        async with self._lock:
            self._journal.forget_noted(log)
            while self._journal.has_entries_of(log) and (old := self._journal.rotate()) is not None:
                await self._sync_elsewhere(old)
                await self._workers.run(_save_all, self._fs, self._data_dir, [], True)
                await self._empty(old)

    async def _sync_elsewhere(self, old: JournalFile) -> None:
        """A sync of the data folder's file system does not cover logs in others."""
        for log in [log for log in old.logs if log.is_elsewhere]:
            await log.sync_own_files()

    async def _empty(self, old: JournalFile) -> None:
        await self._workers.run(old.empty)
        self._journal.emptied(old)

    async def save_log_starts(self) -> None:
        """After records were deleted on request: durable when it returns, so that they do not come back."""
        async with self._lock:
            await self._write_log_starts()

    async def forget_former(self, tp: TopicPartition) -> None:
        """Before a partition gets its first files: whatever the checkpoints say about a former topic of its name is
        taken out of them, durably. After a crash its log start would hide, and its recovery point vouch for, what it
        never knew."""
        async with self._lock:
            self._cleaned.pop(tp, None)  # read at start, perhaps, when nothing else was known about the name
            if any(tp in noted for noted in self._noted.values()):
                await self._write_recovery_points()
                await self._write_log_starts()
                await self._write_cleaned_offsets()

    async def settled(self) -> None:
        """Wait for the round under way: until then a worker may write into any log's folder."""
        async with self._lock:
            pass

    # --- one round ----------------------------------------------------------------------------------------------------

    async def _complete(self, points: list[LogCheckpoint]) -> bool:
        try:
            for point in points:
                await self._commits.flushed(point.log)
            old = self._journal.rotate()
            if old is not None:
                await self._sync_elsewhere(old)
            written = await self._save(
                [point for point in points if point.log.active is not None], everything=old is not None
            )
            if self._commits.failed is not None:
                return False  # another sync was told what this one was not
            async for point in in_slices(written):
                if log_checkpoint.finish(point):
                    point.log.recovery_point = max(point.log.recovery_point, point.end_offset)
                elif not point.log.is_closed:
                    self.changed(point.log)
            await self._write_offsets()
            if old is not None:
                await self._empty(old)
        except StorageFailed as error:
            self._postpone(points, error)
            return False
        except SyncFailed as error:
            self._commits.fail(error)
            return False
        except OSError as error:
            self._postpone(points, error)
            return False
        pruned = [point.work for point in written if point.work.snapshots]
        if pruned:
            await self._workers.run(_prune_all, self._fs, pruned)
        return len(written) == sum(point.log.active is not None for point in points)

    async def _save(self, points: list[LogCheckpoint], *, everything: bool) -> list[LogCheckpoint]:
        """Write what the logs noted; returns those that are done. ``everything``: they, and others, may be durable by
        the journal only, which no recovery point may rely on."""
        if not points and not everything:
            return []
        works = [(point.work, point.log.is_elsewhere) for point in points]
        errors = await self._workers.run(_save_all, self._fs, self._data_dir, works, everything)
        for point, error in zip(points, errors, strict=True):
            if error is not None:
                self._postpone([point], error)
        return [point for point, error in zip(points, errors, strict=True) if error is None]

    def _postpone(self, points: list[LogCheckpoint], error: Exception) -> None:
        for point in points:
            log_checkpoint.abandon(point, error)
            if not point.log.is_closed:
                _log.warning("the checkpoint of %s is postponed: %s", point.log.tp, error)
                self.changed(point.log)

    async def _write_offsets(self) -> None:
        await self._write_recovery_points()
        await self._write_log_starts()
        if self._clock.monotonic() >= self._high_watermarks_due:
            self._high_watermarks_due = self._clock.monotonic() + HIGH_WATERMARKS_INTERVAL_S
            await self._workers.run(self._write_file, names.HIGH_WATERMARKS, self._of_logs(_high_watermark_of))

    async def _write_recovery_points(self) -> None:
        points, former = self._of_logs(_recovery_point_of), self._points_on_disk
        self._points_on_disk = {tp: min(point, former.get(tp, 0)) for tp, point in points.items()}
        await self._write(names.RECOVERY_POINTS, points)
        self._points_on_disk = points

    async def _write_cleaned_offsets(self) -> None:
        offsets = {tp: offset for tp, offset in self._cleaned.items() if tp in self._logs}
        if offsets or names.CLEANED_OFFSETS in self._noted:
            await self._write(names.CLEANED_OFFSETS, offsets)

    async def _write_log_starts(self) -> None:
        log_starts = {
            tp: log.log_start_offset
            for tp, log in self._logs.items()
            if log.log_start_offset > (log.segments[0].base_offset if len(log.segments) else 0)
        }
        if log_starts != self._log_starts:
            self._log_starts = None  # a write that fails may have happened
            await self._write(names.LOG_STARTS, log_starts)
            self._log_starts = log_starts

    async def _write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        self._noted.setdefault(name, set()).update(offsets)
        await self._workers.run(self._write_file, name, offsets)
        self._noted[name] = set(offsets)

    def _of_logs(self, offset_of: Callable[[PartitionLog], int]) -> dict[TopicPartition, int]:
        return {tp: offset_of(log) for tp, log in self._logs.items() if log.active is not None}

    def _write_file(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        """Blocking."""
        self._fs.write_file_atomically(f"{self._data_dir}/{name}", encode_offsets(offsets))


def _tell(waiting: list[asyncio.Future[None]]) -> None:
    for reached in waiting:
        if not reached.done():
            reached.set_result(None)


def _recovery_point_of(log: PartitionLog) -> int:
    return log.recovery_point


def _high_watermark_of(log: PartitionLog) -> int:
    return log.committed_end_offset()


def _save_all(
    fs: FileSystem, data_dir: str, works: list[tuple[Housekeeping, bool]], everything: bool
) -> list[OSError | None]:
    """Blocking. Each log's notes, durable, or why not; a failed sync is raised. ``works`` says also whether they are in
    another file system. ``everything``: whatever else there is in this one has to be durable, too."""
    if everything or len(works) >= SYNC_ALL_FROM_LOGS:
        errors = [_save_one(fs, work, sync=is_elsewhere) for work, is_elsewhere in works]
        if _sync_all(fs, data_dir):
            return errors
        if everything:
            raise OSError("not everything could be synced")
    return [_save_one(fs, work, sync=True) for work, _ in works]


def _sync_all(fs: FileSystem, data_dir: str) -> bool:
    try:
        return fs.sync_all(data_dir)
    except OSError as error:
        raise SyncFailed(*error.args) from error


def _save_one(fs: FileSystem, work: Housekeeping, *, sync: bool) -> OSError | None:
    try:
        save(fs, work, sync=sync)
    except SyncFailed:
        raise
    except OSError as error:
        return error
    return None


def _prune_all(fs: FileSystem, works: list[Housekeeping]) -> None:
    """Blocking."""
    for work in works:
        try:
            prune_snapshots(fs, work)
        except FileNotFoundError:
            pass  # the partition was deleted meanwhile
