"""The logs of one data folder: opens and closes them, creates and deletes them, and does the housekeeping.

    lock() -> open(...) -> create / get / delete ... -> close()

Life        ``open`` recovers every known partition in workers, several at a time; ``close`` flushes, writes the
            checkpoints and then the clean-shutdown marker, without which the next start scans from the recovery points.
Housework   checkpoint rounds, retention, compaction, removal of deleted files after a delay, expiry of idle producers.
            There are no timers per partition.
Failure     a failed sync gives the folder up: every log refuses appends, and ``on_fatal`` is told once. A note is left
            for the next start, which then checks the disk and not the page cache.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from headpond.config.compaction import CompactionSettings
from headpond.config.log import LogConfig
from headpond.model import TopicId, TopicPartition, invariant
from headpond.model.ids import id_text
from headpond.ports import File
from headpond.storage.commit import journal
from headpond.storage.commit.checkpoint_rounds import CheckpointRounds
from headpond.storage.commit.group_commit import FlushMode, GroupCommit
from headpond.storage.commit.journal import Journal
from headpond.storage.folder import data_folder, names
from headpond.storage.folder.data_folder import Contents, StrayFolder
from headpond.storage.folder.names import FolderIdentity
from headpond.storage.folder.removals import Removals
from headpond.storage.log.log import LogPorts, PartitionLog
from headpond.storage.log.segment_files import SyncFailed
from headpond.storage.looks.looks import Looks
from headpond.storage.meters import StorageMeters
from headpond.storage.ports import StoragePorts
from headpond.storage.producers.producers import EXPIRATION_MS
from headpond.storage.recovery.journal_replay import take_in
from headpond.storage.recovery.many import recover_all
from headpond.storage.recovery.recovery import FoundFolder, Recovered
from headpond.storage.slices import LOGS_PER_SLICE, in_slices
from headpond.storage.tracked_workers import TrackedWorkers

if TYPE_CHECKING:
    from headpond.config.broker import StorageSettings
    from headpond.storage.compaction.compactor import Compactor

_log = logging.getLogger(__name__)

COMPACTION_DELAY_S = 1.0
"""The start goes first: compaction is not even imported before, nor as long as no log asks for it."""

DEFAULT_COMPACTION = CompactionSettings()


class _Doomed(NamedTuple):
    """A log whose topic is deleted. ``former``: another of its name, which is being deleted."""

    log: PartitionLog
    former: asyncio.Future[None] | None
    gone: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class StorageConfig:
    flush: FlushMode = "ack"
    flush_interval_ms: int = 1_000  # of the mode "interval", where a topic's flush.ms does not say otherwise
    retention_check_interval_ms: int = 300_000
    first_task_delay_ms: int = 30_000
    recovery_threads: int = 2
    producer_id_expiration_ms: int = EXPIRATION_MS
    producer_id_check_interval_ms: int = 600_000
    compaction: CompactionSettings = DEFAULT_COMPACTION

    @classmethod
    def of(cls, settings: StorageSettings) -> StorageConfig:
        modes: dict[str, FlushMode] = {mode: mode for mode in get_args(FlushMode)}
        return cls(
            flush=modes[settings.flush],
            retention_check_interval_ms=settings.retention_check_interval_ms,
            first_task_delay_ms=settings.first_task_delay_ms,
            recovery_threads=settings.recovery_threads,
            producer_id_expiration_ms=settings.producer_id_expiration_ms,
            producer_id_check_interval_ms=settings.producer_id_check_interval_ms,
            compaction=settings.compaction,
        )


class LogManager:
    def __init__(
        self, data_dir: str, ports: StoragePorts, config: StorageConfig, on_fatal: Callable[[BaseException], None]
    ) -> None:
        self.data_dir = data_dir
        self.strays: list[StrayFolder] = []
        self.scanned_bytes = 0
        """What recovery had to read at the last ``open``."""
        self.meters = StorageMeters()
        self._fs = ports.fs
        self._clock = ports.clock
        self._workers = TrackedWorkers(ports.workers)
        self._lookers = TrackedWorkers(ports.lookers if ports.lookers is not None else ports.workers)
        self._tasks = ports.tasks
        self._random = ports.random
        self._processes = ports.processes
        self._ports = replace(ports, workers=self._workers, lookers=self._lookers)
        self._config = config
        self._on_fatal = on_fatal
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._lock: File | None = None
        self._identity: FolderIdentity | None = None
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._is_open = False
        self._loops: list[asyncio.Task[None]] = []
        self._deletions: dict[TopicPartition, asyncio.Future[None]] = {}
        self.compactor: Compactor | None = None  # None: it was not needed yet, or there is no process to run it in
        self._put_together()

    def _put_together(self) -> None:
        ports, config = self._ports, self._config
        self._removals = Removals(ports.fs, ports.clock, ports.workers)
        self.journal = Journal(ports.fs, ports.workers, self.data_dir, lambda error: self.commits.fail(error))
        self.commits = GroupCommit(
            self.data_dir,
            ports,
            mode=config.flush,
            interval_ms=config.flush_interval_ms,
            on_fatal=self._give_up,
            journal=self.journal,
            meters=self.meters,
        )
        self._rounds = CheckpointRounds(
            data_dir=self.data_dir,
            fs=ports.fs,
            clock=ports.clock,
            workers=ports.workers,
            commits=self.commits,
            journal=self.journal,
            logs=self._logs,
        )
        self.looks = Looks(
            lookers=self._lookers, processes=ports.processes, fs=ports.fs, clock=ports.clock, tasks=ports.tasks
        )
        self._log_ports = self._make_log_ports()

    def _make_log_ports(self) -> LogPorts:
        ports, rounds = self._ports, self._rounds
        return LogPorts(
            data_dir=self.data_dir,
            fs=ports.fs,
            clock=ports.clock,
            workers=ports.workers,
            tasks=ports.tasks,
            random=ports.random,
            commits=self.commits,
            journal=self.journal,
            looks=self.looks,
            on_changed=rounds.changed,
            on_checkpoint_due=rounds.hurry,
            checkpointed=rounds.checkpointed,
            lower_recovery_point=rounds.lower_recovery_point,
            leave_journal=rounds.leave_journal,
            save_log_starts=rounds.save_log_starts,
            remove_later=self._removals.later,
            checkpoints_settled=rounds.settled,
            folder_is_free=self._folder_is_free,
            meters=self.meters,
        )

    # --- life ---------------------------------------------------------------------------------------------------------

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the folder belongs to; None when it is new."""
        return self._identity.cluster_id if self._identity is not None else None

    async def lock(self) -> None:
        """Take the folder; raises ``DataFolderInUse``, ``DataFolderUnusable``."""
        invariant(self._lock is None, "locked twice", self.data_dir)
        lock, self._identity = await self._workers.run(data_folder.take, self._fs, self.data_dir)
        self._lock, self.commits.device = lock, lock.device

    async def open(
        self,
        known: Mapping[TopicPartition, TopicId],
        config_of: Callable[[str], LogConfig],
        cluster_id: str,
        node_id: int,
    ) -> None:
        """Load the logs of the partitions that the metadata store assigns to this broker."""
        if self._lock is None:
            await self.lock()
        if self._identity is not None:
            data_folder.check_identity(self.data_dir, self._identity, cluster_id=cluster_id, node_id=node_id)
        else:
            directory_id = id_text(self._random.random_bytes(16))
            self._identity = FolderIdentity(cluster_id, node_id, directory_id)
            await self._workers.run(data_folder.write_identity, self._fs, self.data_dir, self._identity)
        chance = self._random.random_bytes(16 * len(known))
        unique = [chance[at : at + 16] for at in range(0, len(chance), 16)]
        contents = await self._workers.run(data_folder.look, self._fs, self.data_dir, dict(known), unique)
        self.strays = contents.strays
        self._high_watermarks = contents.high_watermarks
        self._rounds.found(contents.recovery_points, contents.log_starts, contents.cleaned_offsets)
        self._removals.later(contents.going, 0)
        try:
            await self._load(contents, known, config_of)
        except SyncFailed:
            self._fs.leave_note(f"{self.data_dir}/{names.SYNC_FAILED}")
            raise
        async for tp in in_slices(known):
            if tp not in self._logs:
                self.create(tp, known[tp], config_of(tp.topic))
        await take_in(
            self._logs.values(),
            self.strays,
            is_clean=contents.is_clean,
            data_dir=self.data_dir,
            fs=self._fs,
            workers=self._workers,
            clock=self._clock,
        )
        self.journal.allow()
        if contents.sync_failed:
            await self._workers.run(self._fs.remove, f"{self.data_dir}/{names.SYNC_FAILED}")
        self._is_open = True
        self._start_loops()

    async def close(self, *, broker_epoch: int = -1) -> None:
        """Everything durable, marked clean, and closed; the folder may be opened again."""
        if self.compactor is not None:
            self.compactor.stop()
        for loop_task in self._loops:
            loop_task.cancel()
        self._removals.stop()
        for log in self._logs.values():
            log.begin_close()
        await self.commits.idle()
        await self._workers.idle()
        is_clean = False
        if self._is_open and self.commits.failed is None:
            is_clean = await self._rounds.close()
        for log in self._logs.values():
            log.close()
        self.journal.close()
        await self._workers.idle()
        if is_clean:
            await self._mark_clean(broker_epoch)
        await self.commits.idle()
        await self._workers.idle()
        await self._lookers.idle()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        self._is_open = False

    async def _mark_clean(self, broker_epoch: int) -> None:
        """A disk that does not take the marker costs a recovery at the next start, not the rest of the shutdown."""
        try:
            await self._workers.run(journal.remove, self._fs, self.data_dir)
            await self._workers.run(data_folder.write_clean_marker, self._fs, self.data_dir, broker_epoch)
        except OSError as error:
            _log.warning("could not mark %s as clean, so the next start recovers it: %s", self.data_dir, error)

    def reconfigure(self, config: StorageConfig) -> None:
        """Dynamic settings; the flush mode is fixed until the next start."""
        self._config = config
        if self.compactor is not None:
            self.compactor.configure(config.compaction)
        for log in self._logs.values():
            log.producers.expiration_ms = config.producer_id_expiration_ms

    def _give_up(self, error: OSError) -> None:
        _log.critical("the data folder %s failed and takes no more writes: %s", self.data_dir, error)
        for log in self._logs.values():
            log.fail(error)
        self._fs.leave_note(f"{self.data_dir}/{names.SYNC_FAILED}")
        self._on_fatal(error)

    # --- logs ---------------------------------------------------------------------------------------------------------

    def get(self, tp: TopicPartition) -> PartitionLog | None:
        return self._logs.get(tp)

    def all(self) -> list[PartitionLog]:
        return list(self._logs.values())

    def create(self, tp: TopicPartition, topic_id: TopicId, config: LogConfig) -> PartitionLog:
        """A new, empty log. No file is touched before its first append."""
        invariant(tp not in self._logs, "the log exists", tp)
        log = PartitionLog(tp, topic_id, config, self._log_ports)
        log.producers.expiration_ms = self._config.producer_id_expiration_ms
        if self.commits.failed is not None:
            log.fail(self.commits.failed)
        self._logs[tp] = log
        return log

    def delete(self, *tps: TopicPartition) -> Coroutine[Any, Any, None]:
        """Forget the logs at once: the names are free for other topics when this returns. What is to be awaited renames
        their folders, some at a time, which are removed after ``file.delete.delay.ms``."""
        doomed: list[_Doomed] = []
        for tp in tps:
            log = self._logs.pop(tp, None)
            if log is None:
                continue
            log.refuse()
            self._rounds.forget(log)
            self.commits.forget(log)
            gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            doomed.append(_Doomed(log, self._deletions.get(tp), gone))
            self._deletions[tp] = gone
        return self._delete(doomed)

    async def _delete(self, doomed: list[_Doomed]) -> None:
        for at in range(0, len(doomed), LOGS_PER_SLICE):
            some = doomed[at : at + LOGS_PER_SLICE]
            try:
                await self._move_away(some)
            finally:
                for log, _, gone in some:
                    if self._deletions.get(log.tp) is gone:
                        del self._deletions[log.tp]
                    gone.set_result(None)

    async def _move_away(self, doomed: list[_Doomed]) -> None:
        for log, former, _ in doomed:
            if former is not None:
                await asyncio.shield(former)
            await log.stop()
            self._rounds.forget(log)  # a change that was under way may have entered it again
        await self._rounds.settled()
        unique = self._random.random_bytes(16 * len(doomed))
        moves = [
            (str(each.log.tp), names.renamed_folder(each.log.tp, unique[16 * n : 16 * n + 16], names.DELETE_FOLDER))
            for n, each in enumerate(doomed)
        ]
        moved = await self._workers.run(data_folder.move_away, self._fs, self.data_dir, moves)
        going: dict[int, list[str]] = {}  # by the delay
        for each, path in zip(doomed, moved, strict=True):
            if isinstance(path, OSError):
                _log.error("the folder of the deleted %s could not be renamed: %s", each.log.tp, path)
            elif path is not None:
                going.setdefault(each.log.config.file_delete_delay_ms, []).append(path)
        for delay_ms, paths in going.items():
            self._removals.later(paths, delay_ms)

    async def _folder_is_free(self, tp: TopicPartition) -> None:
        """A topic of the same name may have been deleted: wait until its folder is out of the way, and take what is
        known about it out of the checkpoints."""
        if (deletion := self._deletions.get(tp)) is not None:
            await asyncio.shield(deletion)
        await self._rounds.forget_former(tp)

    def high_watermark_at_start(self, tp: TopicPartition) -> int:
        """What ``replication-offset-checkpoint`` said; 0 when it said nothing."""
        return self._high_watermarks.get(tp, 0)

    async def space(self) -> tuple[int, int]:
        """(total, free) bytes of the file system that holds the folder."""
        return await self._workers.run(
            lambda: (self._fs.total_bytes(self.data_dir), self._fs.free_bytes(self.data_dir))
        )

    async def _load(
        self,
        contents: Contents,
        known: Mapping[TopicPartition, TopicId],
        config_of: Callable[[str], LogConfig],
    ) -> None:
        now_ms = self._clock.now_ms()
        found: list[FoundFolder] = []
        for tp in contents.partitions:
            found.append(
                FoundFolder(
                    path=f"{self.data_dir}/{tp}",
                    tp=tp,
                    is_clean=contents.is_clean,
                    recovery_point=contents.recovery_points.get(tp, 0),
                    log_start_offset=contents.log_starts.get(tp, 0),
                    interval_bytes=config_of(tp.topic).index_interval_bytes,
                    producer_expiration_ms=self._config.producer_id_expiration_ms,
                    now_ms=now_ms,
                )
            )

        def load(each: FoundFolder, recovered: Recovered) -> None:
            log = self.create(each.tp, known[each.tp], config_of(each.tp.topic))
            log.adopt(recovered)
            log.recovery_point = min(each.recovery_point, log.log_end_offset)
            if (not each.is_clean or recovered.is_rebuilt) and log.active is not None:
                self._rounds.changed(log)
            self._removals.later(recovered.to_remove, log.config.file_delete_delay_ms)
            self.scanned_bytes += recovered.scanned_bytes

        await recover_all(
            found, load, fs=self._fs, workers=self._workers, tasks=self._tasks, threads=self._config.recovery_threads
        )

    # --- housework ----------------------------------------------------------------------------------------------------

    def _start_loops(self) -> None:
        self._loops = [
            self._tasks.spawn("checkpoint rounds", self._rounds.run()),
            self._tasks.spawn("retention", self._apply_retention()),
            self._tasks.spawn("producer expiry", self._expire_producers()),
        ]
        if self._processes is not None:
            self._loops.append(self._tasks.spawn("start of compaction", self._start_compaction()))

    async def _start_compaction(self) -> None:
        await self._clock.sleep(COMPACTION_DELAY_S)
        while not any(log.config.compacts for log in self._logs.values()):
            await self._clock.sleep(self._config.compaction.backoff_ms / 1_000)
        await self._workers.run(_compactor)  # imports it, and does not hold up the loop
        self.make_compactor().start()

    def make_compactor(self) -> Compactor:
        """``compactor``, made if need be; there has to be a process for it."""
        if self.compactor is None:
            invariant(self._processes is not None, "no process to compact in", self.data_dir)
            assert self._processes is not None
            self.compactor = _compactor()(
                self._ports,
                self._processes,
                rounds=self._rounds,
                on_sync_failed=self.commits.fail,
                logs=self._logs,
                settings=self._config.compaction,
            )
        return self.compactor

    async def _apply_retention(self) -> None:
        await self._clock.sleep(self._config.first_task_delay_ms / 1_000)
        while True:
            await self.delete_old_segments()
            await self._clock.sleep(self._config.retention_check_interval_ms / 1_000)

    async def delete_old_segments(self) -> int:
        """Apply every log's retention now; returns how many segments went."""
        self.meters.retention_runs += 1
        count = 0
        async for log in in_slices(self._logs.values()):
            try:
                count += await log.delete_old_segments(self._clock.now_ms())
            except Exception as error:  # one log's trouble must not keep the others from being tidied
                _log.warning("retention of %s is postponed: %r", log.tp, error)
        return count

    async def _expire_producers(self) -> None:
        while True:
            await self._clock.sleep(self._config.producer_id_check_interval_ms / 1_000)
            now_ms = self._clock.now_ms()
            async for log in in_slices(self._logs.values()):
                log.producers.expire(now_ms)


def _compactor() -> type[Compactor]:
    from headpond.storage.compaction.compactor import Compactor

    return Compactor
