"""Compaction's loop: looks for the dirtiest log, has it cleaned in a worker process, and swaps the result in.

Pace        one look every ``backoff_ms`` when there is nothing to do; as many logs at a time as ``threads`` says; no
            faster than ``bytes_per_s_max``. Appends never wait for any of it.
Stops       when the log is deleted, truncated, loses segments to retention or is no longer compacted: what was not
            swapped in is thrown away.
Failures    a full disk: tried again later, after all others that need it. A batch that can't be read, or a process that
            keeps dying over a log: that log is left alone until the next start, and said so. A failed sync gives the
            data folder up, as everywhere.
A crash     see ``swap``. The end of the last cleaning (``cleaner-offset-checkpoint``) is written after its segments are
            in place: if it is lost, some work is done twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from headpond.config.compaction import CompactionSettings
from headpond.model import BrokerError, StorageFailed, TopicPartition
from headpond.ports import Buffer, Processes, ProcessLost
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import HEADER_BYTES, read_header
from headpond.storage.commit.checkpoint_rounds import CheckpointRounds
from headpond.storage.compaction.choice import Dirt, Unknown, find_dirt
from headpond.storage.compaction.job import Cleaned, CleanedSegment, CleaningJob, SegmentToClean
from headpond.storage.compaction.output import remove_unfinished
from headpond.storage.compaction.swap import SegmentsChanged, swap_in
from headpond.storage.log.log import PartitionLog
from headpond.storage.log.lookup import FilesChanged, Wanted
from headpond.storage.log.reading import Misread
from headpond.storage.log.segment import Segment
from headpond.storage.log.segment_files import SyncFailed
from headpond.storage.ports import StoragePorts
from headpond.storage.producers.txn_index import encode as encode_aborted
from headpond.storage.slices import in_slices

_log = logging.getLogger(__name__)

LOSSES_MAX = 3
"""A log at which the worker process dies this often in a row, or fails with an unexpected error, is not compacted any
more: it would only fail again."""
HOLD_BACK_STEP_S = 1.0
"""A log that is held back looks up this often: another pace, or the end of the log, need not wait for the old one."""


@dataclass(slots=True)
class CompactionStats:
    """Since the start; for metrics."""

    cleanings: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_removed: int = 0
    seconds: float = 0.0
    failures: int = 0


class Compactor:
    def __init__(
        self,
        ports: StoragePorts,
        processes: Processes,
        *,
        rounds: CheckpointRounds,
        on_sync_failed: Callable[[OSError], None],
        logs: Mapping[TopicPartition, PartitionLog],
        settings: CompactionSettings,
    ) -> None:
        self.stats = CompactionStats()
        self.uncleanable: dict[PartitionLog, str] = {}
        """Logs that are left alone until the next start, and why."""
        self._fs = ports.fs
        self._clock = ports.clock
        self._workers = ports.workers
        self._tasks = ports.tasks
        self._processes = processes
        self._rounds = rounds
        self._on_sync_failed = on_sync_failed
        self._logs = logs
        self._settings = settings
        self._busy: dict[PartitionLog, None] = {}
        self._losses: dict[PartitionLog, int] = {}
        self._failed: dict[PartitionLog, int] = {}  # its last cleaning failed, as the how manieth of all
        self._paid_until_s = 0.0  # by the clock, what all loops have read and written takes as long at the pace allowed
        self._loops: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()

    # --- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """One loop for each log that may be cleaned at a time."""
        while self._settings.is_enabled and len(self._loops) < self._settings.threads:
            number = len(self._loops)
            self._loops.append(self._tasks.spawn(f"compaction {number}", self._run(number)))

    def stop(self) -> None:
        loops, self._loops = self._loops, []
        for loop in loops:
            loop.cancel()

    def configure(self, settings: CompactionSettings) -> None:
        """Takes effect at once, within a cleaning that is under way too where it can: pace, and how many at a time."""
        if settings == self._settings:
            return
        if settings.bytes_per_s_max != self._settings.bytes_per_s_max:
            self._paid_until_s = 0.0  # at another pace the account begins anew
        self._settings = settings
        if self._loops:
            self.start()
        self._wake.set()

    async def _run(self, number: int) -> None:
        while True:
            self._wake.clear()
            if number < self._settings.threads and await self._clean_one():
                continue
            timer = self._clock.call_later(self._settings.backoff_ms / 1_000, self._wake.set)
            await self._wake.wait()
            timer.cancel()

    async def _clean_one(self) -> bool:
        try:
            return await self.clean_dirtiest()
        except Exception:
            self.stats.failures += 1
            _log.exception("compaction failed; the next try is after log.cleaner.backoff.ms")
            return False

    # --- one log ------------------------------------------------------------------------------------------------------

    async def clean_dirtiest(self) -> bool:
        """Clean the log that needs it most, if one does; those that failed come last, the latest at the very end. True:
        it was cleaned, there may be more to do."""
        self._forget_gone()
        best: tuple[tuple[int, float], PartitionLog] | None = None
        async for log in in_slices(self._logs.values()):
            if not log.config.compacts or log in self._busy or log in self.uncleanable:
                continue
            dirt = await self._dirt_of(log)
            if dirt is not None and dirt.is_worth_it(log.config):
                rank = -self._failed.get(log, 0), dirt.ratio
                if best is None or rank > best[0]:
                    best = rank, log
        if best is None or (log := best[1]) in self._busy or self._is_gone(log):
            return False
        now_dirt = self.dirt_of(log)  # it may have changed while the others were looked at
        if not isinstance(now_dirt, Dirt) or not now_dirt.is_worth_it(log.config):
            return False
        return await self.clean(log, now_dirt)

    async def clean(self, log: PartitionLog, dirt: Dirt) -> bool:
        """True: what was dirty is clean now."""
        self._busy[log] = None
        try:
            await self._clean(log, dirt)
            self._losses.pop(log, None)
            self._failed.pop(log, None)
            return True
        except (SegmentsChanged, FilesChanged):
            pass  # the log has become another; it is looked at again
        except Exception as error:
            if not self._is_gone(log):
                self._note_failure(log, error)
        finally:
            del self._busy[log]
        await self._tidy_up(log)
        return False

    async def _clean(self, log: PartitionLog, dirt: Dirt) -> None:
        from headpond.storage.compaction.cleaner import clean  # not at the start of a broker that never compacts

        started, truncations = self._clock.monotonic(), log.truncations
        working_since = started
        by_base = {segment.base_offset: segment for segment in dirt.segments}  # which are not replaced yet

        def is_stale() -> bool:
            return log.truncations != truncations or not set(by_base.values()).issubset(log.segments)

        def is_over() -> bool:
            return self._is_gone(log) or log.truncations != truncations or not log.config.compacts

        if is_stale():
            raise SegmentsChanged
        try:
            async with aclosing(self._processes.steps(clean, await self._job(log, dirt))) as steps:
                async for step in steps:
                    if isinstance(step, CleanedSegment):
                        old = [by_base.pop(base_offset) for base_offset in step.replaces]
                        await swap_in(log, step, old, truncations)
                    elif isinstance(step, Cleaned):
                        self._count(log, step, self._clock.monotonic() - started)
                        await self._rounds.save_cleaned_end_offset(log, step.first_dirty_offset, truncations)
                    else:
                        await self._hold_back(step.size_bytes, working_since, is_over)
                        working_since = self._clock.monotonic()
                    if is_over():
                        raise SegmentsChanged
        except (CorruptBatch, FileNotFoundError) as error:
            if is_stale():  # it is not the disk that has changed the files
                raise SegmentsChanged from error
            raise

    async def _job(self, log: PartitionLog, dirt: Dirt) -> CleaningJob:
        config, settings = log.config, self._settings
        producers = log.producers.snapshot()  # quick: the last roll has encoded those that were idle since
        aborted = await self._workers.run(encode_aborted, list(log.aborted))
        buffer_bytes = settings.dedupe_buffer_bytes * settings.load_factor
        threads = max(1, settings.threads)  # none: this is the last log
        return CleaningJob(
            path=log.path,
            segments=[SegmentToClean(each.base_offset, each.end_offset, each.size_bytes) for each in dirt.segments],
            first_dirty_offset=dirt.first_dirty_offset,
            now_ms=self._clock.now_ms(),
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes_max=config.segment_bytes,
            index_bytes_max=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            map_bytes_max=int(buffer_bytes / threads),
            read_bytes=max(HEADER_BYTES, settings.io_buffer_bytes // threads),
            producers=producers,
            aborted=aborted,
        )

    async def _hold_back(
        self, size_bytes: int, working_since_s: float, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait for what the work has not taken itself of the time that so much may take, over all loops. However slow
        the pace is, another one takes effect soon, and work that has become pointless is not waited for."""
        rate = self._settings.bytes_per_s_max
        if rate <= 0:
            return
        self._paid_until_s = max(self._paid_until_s, working_since_s) + size_bytes / rate
        while (delay_s := self._paid_until_s - self._clock.monotonic()) >= 0.001 and not is_over():
            await self._clock.sleep(min(delay_s, HOLD_BACK_STEP_S))

    def _count(self, log: PartitionLog, cleaned: Cleaned, seconds: float) -> None:
        stats = self.stats
        stats.cleanings += 1
        stats.seconds += seconds
        stats.bytes_read += cleaned.bytes_read
        stats.bytes_written += cleaned.bytes_written
        stats.records_read += cleaned.records_read
        stats.records_removed += cleaned.records_read - cleaned.records_kept
        _log.info("compacted %s up to offset %d in %.1f s: %s", log.tp, cleaned.first_dirty_offset, seconds, cleaned)

    # --- how dirty ----------------------------------------------------------------------------------------------------

    async def _dirt_of(self, log: PartitionLog) -> Dirt | None:
        try:
            while not self._is_gone(log) and log.active is not None:
                dirt = self.dirt_of(log)
                if isinstance(dirt, Dirt):
                    return dirt
                await self._load_timestamps(log, dirt.segment)
        except (FilesChanged, BrokerError) as error:
            _log.warning("%s can't be looked at for compaction now: %s", log.tp, error)
        except Misread as error:
            self._give_up(log, f"it holds a batch that can't be read: {error}")
        return None

    def dirt_of(self, log: PartitionLog) -> Dirt | Unknown:
        return find_dirt(
            [*log.segments],
            log.config,
            cleaned_end_offset=self._rounds.cleaned_end_offset(log),
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            limit_offset=min(_last_stable_offset(log), self._rounds.recovery_point_on_disk(log)),
            now_ms=self._clock.now_ms(),
        )

    async def _load_timestamps(self, log: PartitionLog, segment: Segment) -> None:
        await log.reads.load(segment)
        if segment.first_timestamp is None and segment.size_bytes:

            def first_header() -> Generator[Wanted, Buffer, int]:
                head = yield segment, 0, HEADER_BYTES
                return read_header(head).max_timestamp

            segment.first_timestamp = await log.reads.drive(first_header())

    # --- failures -----------------------------------------------------------------------------------------------------

    def _is_gone(self, log: PartitionLog) -> bool:
        return log.is_closed or log.failure is not None or self._logs.get(log.tp) is not log

    def _note_failure(self, log: PartitionLog, error: Exception) -> None:
        self.stats.failures += 1
        self._failed[log] = self.stats.failures
        if isinstance(error, CorruptBatch):
            self._give_up(log, f"it holds a batch that can't be read: {error}")
        elif isinstance(error, SyncFailed):
            self._on_sync_failed(error)
        elif isinstance(error, (OSError, StorageFailed)):
            _log.warning("the compaction of %s is tried again later: %s", log.tp, error)
        else:
            self._losses[log] = self._losses.get(log, 0) + 1
            if self._losses[log] >= LOSSES_MAX:
                self._give_up(log, f"it failed {LOSSES_MAX} times in a row: {error!r}")
            else:
                unknown = error if not isinstance(error, ProcessLost) else None
                _log.warning("the compaction of %s is tried again later: %r", log.tp, error, exc_info=unknown)

    def _give_up(self, log: PartitionLog, reason: str) -> None:
        self.uncleanable[log] = reason
        _log.error("%s is not compacted any more until the next start: %s", log.tp, reason)

    def _forget_gone(self) -> None:
        for marked in (self.uncleanable, self._losses, self._failed):
            for log in [log for log in marked if self._is_gone(log)]:
                del marked[log]

    async def _tidy_up(self, log: PartitionLog) -> None:
        if self._is_gone(log):
            return
        try:
            await self._workers.run(remove_unfinished, self._fs, log.path)
        except OSError as error:
            _log.warning("files of an unfinished compaction of %s stay until the next start: %s", log.tp, error)


def _last_stable_offset(log: PartitionLog) -> int:
    committed, first_open = log.committed_end_offset(), log.producers.first_unstable_offset
    return committed if first_open is None else min(committed, first_open)
