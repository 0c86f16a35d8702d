"""The group commit: makes what was appended durable, for everybody at once.

An appended log is marked dirty. A small number of workers run fdatasync, each for one dirty log at a time, and
everything that is appended to a log while its sync runs shares the next one; when many logs are dirty, one sync of the
journal serves them all, or one syncfs. Syncs begin at the end of a turn of the loop, so that everything which came in
with it shares them; in a long turn they begin before, and a sync that has returned meanwhile is followed by the next
one at once.

    mode        a dirty log is synced
    ack         at once when somebody waits (``urgent``, ``hurry``), else after ``LAG_S``
    interval    after the flush interval
    os          when the operating system likes; a checkpoint round syncs it at the latest
    each mode   ``flush.ms`` and ``flush.messages`` of the topic bring it forward

Promise: ``PartitionLog.flushed_end_offset`` moves only after a sync that began after those bytes were written has
returned. A failed sync is never repeated (Linux would answer "fine" with the data gone): the folder is given up,
``on_fatal`` is told, and whoever waits gets ``StorageFailed``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Literal

from headpond.model import StorageFailed
from headpond.model.waits import Awaited
from headpond.ports import Clock, File, FileSystem, TimerHandle
from headpond.storage.commit.journal import Journal
from headpond.storage.meters import StorageMeters
from headpond.storage.ports import StoragePorts

if TYPE_CHECKING:
    from headpond.storage.log.log import Flush, PartitionLog

_log = logging.getLogger(__name__)

FlushMode = Literal["ack", "interval", "os"]

GATHERED_APPENDS = 24
"""When this many appends wait, their sync begins in the middle of the turn if it can: the disk would wait for a long
turn to end, and the loop then for the disk (docs/decisions/0006)."""
APPENDS_BETWEEN_LOOKS = 8
"""If it can't, because one is under way, the loop looks again after this many more."""
SYNCS_AT_ONCE = 4
"""A disk's queue serves a few syncs side by side; more only hold threads."""
SYNC_ALL_FROM_LOGS = 8
"""As many dirty logs are served by one syncfs, one at a time, while the next ones gather. Measured: 8 files take 1.3 ms
with fdatasync on four threads and 0.6 ms with syncfs, 128 files 20 and 3.4 ms. Below it syncfs is avoided: it also
waits for what other programs wrote to that file system."""
LAG_S = 0.05
"""How long an append that no request waits for may stay unsynced (docs/decisions/0001)."""
_NEVER_MS = 9_223_372_036_854_775_807

# Where a log stands (``PartitionLog.flush_state``).
CLEAN, LATER, READY, SYNCING, SYNCING_HURRIED = range(5)
"""Nothing to sync, or no sync requested; due at some time; waits for a worker; syncing; syncing, and another sync is
already requested."""


class GroupCommit:
    def __init__(
        self,
        data_dir: str,
        ports: StoragePorts,
        *,
        mode: FlushMode,
        interval_ms: int,
        on_fatal: Callable[[OSError], None],
        journal: Journal,
        meters: StorageMeters,
    ) -> None:
        self._journal = journal
        self._may_journal = False  # it is not known yet whether everything can be synced at once
        self._mode = mode
        self._meters = meters
        self._syncer = ports.syncer
        self._fs = ports.fs
        self._clock = ports.clock
        self._workers = ports.workers
        self._data_dir = data_dir
        self._delay_s: float | None = {"ack": LAG_S, "interval": interval_ms / 1_000, "os": None}[mode]
        self._on_fatal = on_fatal
        # Each log knows where it stands (``flush_state``); the dirty ones stand in one of these too.
        self._later: dict[PartitionLog, float] = {}  # and when they are due
        self._ready: dict[PartitionLog, None] = {}  # they wait for a worker
        self._under_way: dict[int, list[Flush]] = {}  # by the number of the job, until those who wait are told
        self._untold: deque[tuple[int, tuple[bool, float] | None]] = deque()  # of these: those that have returned
        self._running = 0  # of these: syncs that have not returned
        self._syncing = 0  # and the logs in them
        self._number = 0
        self._waiting = 0  # appends since a sync began, at least: somebody waits for them
        self._look_at = GATHERED_APPENDS  # as many of them
        self._is_looking = False
        self._idle_waiters: list[asyncio.Future[None]] = []
        self._is_gathering = False
        self._timer: TimerHandle | None = None
        self._timer_due = 0.0
        self.failed: OSError | None = None
        self.device = 0
        """Of the data folder. Logs in other file systems (their folder is a link, or a mount point) are synced by their
        own files: syncfs does not cover them."""

    def mark_dirty(self, log: PartitionLog, urgent: bool = False) -> None:
        """``log`` was appended to. Cheap when it is known to be dirty already."""
        if urgent or log.log_end_offset - log.flushed_end_offset >= log.flush_messages:
            if log.flush_state != READY:
                self.hurry(log)
            waiting = self._waiting = self._waiting + 1
            if waiting >= self._look_at:
                self._look()
        elif log.flush_state == CLEAN:
            self._wait(log)

    def hurry(self, log: PartitionLog) -> None:
        """Somebody waits for the end that ``log`` has now."""
        state = log.flush_state
        if state == SYNCING:
            log.flush_state = SYNCING_HURRIED
        elif state <= LATER and log.unsynced and self.failed is None:
            if state == LATER:
                del self._later[log]
            log.flush_state = READY
            self._ready[log] = None
            if not self._is_gathering:
                self._is_gathering = True
                asyncio.get_running_loop().call_soon(self._gathered)

    def forget(self, log: PartitionLog) -> None:
        """``log`` is closed or goes away: start no more syncs for it."""
        self._later.pop(log, None)
        self._ready.pop(log, None)
        if log.flush_state in (LATER, READY):
            log.flush_state = CLEAN

    async def flushed(self, log: PartitionLog) -> None:
        """Wait until everything that ``log`` holds now is durable; raises ``StorageFailed`` if that can't be had."""
        if log.flushed_end_offset >= log.log_end_offset:
            return
        if self.failed is not None:
            raise StorageFailed(message=f"the data folder failed: {self.failed}")
        if log.is_closed:
            raise StorageFailed(message=f"{log.tp} is closed")
        awaited = Awaited()
        log.flush_waits.add(log.log_end_offset, awaited)
        self.hurry(log)
        await awaited.future

    # --- waiting ------------------------------------------------------------------------------------------------------

    def _wait(self, log: PartitionLog) -> None:
        delay_s = self._delay_s
        if log.config.flush_ms < _NEVER_MS:
            flush_s = log.config.flush_ms / 1_000
            delay_s = flush_s if delay_s is None else min(delay_s, flush_s)
        if delay_s is None or self.failed is not None:
            return
        due = self._clock.monotonic() + delay_s
        self._later[log] = due
        log.flush_state = LATER
        if self._timer is None or due < self._timer_due:
            self._arm(due)

    def _arm(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._clock.call_later(max(0.0, due - self._clock.monotonic()), self._due)

    def _due(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        # Nobody waits for these, so those that are nearly due come along, and one worker syncs them all.
        due_soon = [log for log, due in self._later.items() if due <= now + LAG_S / 2]
        for log in due_soon:
            del self._later[log]
            log.flush_state = CLEAN
        if self._later:
            self._arm(min(self._later.values()))
        if self.failed is None:
            self._begin(due_soon)

    # --- syncing ------------------------------------------------------------------------------------------------------

    def _gathered(self) -> None:
        self._is_gathering = False
        self._start()

    def _look(self) -> None:
        """In the middle of a turn, and of an append: nobody may be told anything before it is over."""
        self._look_at = self._waiting + APPENDS_BETWEEN_LOOKS
        if self._running and self._syncer is not None:
            self._is_looking = True
            try:
                self._syncer.look()
            finally:
                self._is_looking = False
        self._start()

    def _start(self) -> None:
        if self._journal.is_on and self._ready and self.failed is None:
            self._start_journaled()
        while self._ready and self.failed is None and not self._journal.is_on:
            ready = len(self._ready)
            if ready + self._syncing >= SYNC_ALL_FROM_LOGS:
                # Syncs of a few files do not hold up one of everything.
                if self._syncing >= SYNC_ALL_FROM_LOGS or (self._running and ready < SYNC_ALL_FROM_LOGS):
                    return
                logs, self._ready = self._ready, {}
                self._begin(logs)
                if self._may_journal:
                    self._journal.turn_on()
            elif self._running >= SYNCS_AT_ONCE:
                return
            else:
                log = next(iter(self._ready))
                del self._ready[log]
                self._begin((log,))
        if not self._ready:
            self._waiting, self._look_at = 0, GATHERED_APPENDS

    def _start_journaled(self) -> None:
        """One sync for all that wait, if the one before has returned. Some may have to be synced by their own files:
        then all are."""
        journal = self._journal
        if journal.is_syncing:
            return
        if any(log.is_unnoted for log in self._ready):
            journal.turn_off()
        elif (file := journal.write()) is not None:
            logs, self._ready = self._ready, {}
            if flushes := self._flushes(logs, into_journal=True):
                journal.is_syncing = True
                self._submit(flushes, [file], is_everything=False)

    def _begin(self, logs: Iterable[PartitionLog]) -> None:
        if flushes := self._flushes(logs, into_journal=False):
            if len(flushes) >= SYNC_ALL_FROM_LOGS:
                elsewhere = [flush for flush in flushes if flush.log.is_elsewhere]
                if elsewhere:
                    flushes = [flush for flush in flushes if not flush.log.is_elsewhere]
                    self._submit(elsewhere, None, is_everything=False)
            if flushes:
                self._submit(flushes, None, is_everything=len(flushes) >= SYNC_ALL_FROM_LOGS)

    def _flushes(self, logs: Iterable[PartitionLog], *, into_journal: bool) -> list[Flush]:
        flushes = []
        for log in logs:
            flush = log.begin_journaled_flush() if into_journal else log.begin_flush()
            if flush is None:
                log.flush_state = CLEAN
            else:
                log.flush_state = SYNCING
                flushes.append(flush)
        return flushes

    def _submit(self, flushes: list[Flush], journal: list[File] | None, *, is_everything: bool) -> None:
        files = journal or [s.file for flush in flushes for s in flush.segments if s.file is not None]
        number = self._number = self._number + 1

        def done(synced: tuple[bool, float] | None, error: BaseException | None) -> None:
            self._running -= 1
            self._syncing -= len(flushes)
            if journal is not None:
                self._journal.is_syncing = False
            self._release(flushes)
            if error is not None:
                self.fail(error)
            self._start()  # the disk goes on before those who wait are told
            self._untold.append((number, synced))
            if self._is_looking:
                asyncio.get_running_loop().call_soon(self._tell)
            else:
                self._tell()

        def done_elsewhere(duration_s: float | None, error: BaseException | None) -> None:
            done(None if duration_s is None else (is_everything, duration_s), error)

        self._under_way[number] = flushes
        self._running += 1
        self._syncing += len(flushes)
        folder = self._data_dir if is_everything else None
        if self._syncer is None or not self._syncer.offer(files, folder, done_elsewhere):
            self._workers.submit(partial(_sync, self._fs, self._clock, folder, files), done)

    async def idle(self) -> None:
        """Wait until no sync runs."""
        while self._under_way:
            reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(reached)
            await reached

    def _tell_idle(self) -> None:
        waiting, self._idle_waiters = self._idle_waiters, []
        for reached in waiting:
            if not reached.done():
                reached.set_result(None)

    def _release(self, flushes: list[Flush]) -> None:
        """Their sync has returned: they may have another one, if they were appended to meanwhile."""
        for flush in flushes:
            log = flush.log
            is_hurried = log.flush_state == SYNCING_HURRIED
            log.flush_state = CLEAN
            if log.unsynced and not log.is_closed:
                if is_hurried or (log.flush_waits and log.flush_waits[-1][0] > flush.end_offset):
                    log.flush_state = READY
                    self._ready[log] = None
                else:
                    self._wait(log)

    def _tell(self) -> None:
        """Whoever waits learns what is durable; in the order of the syncs, which one log may have had two of."""
        while self._untold:
            number, synced = self._untold.popleft()
            flushes = self._under_way.pop(number)
            if synced is not None:
                self._count(flushes, *synced)
            for flush in flushes:
                try:
                    for segment in flush.segments:
                        segment.unpin()
                    if synced is not None:
                        flush.log.end_flush(flush)
                except Exception:  # whoever is told about it must not stop the commit of the others
                    _log.exception("telling that %s was flushed failed", flush.log.tp)
        if not self._under_way:
            self._tell_idle()

    def _count(self, flushes: Sequence[Flush], is_syncfs: bool, duration_s: float) -> None:
        self._may_journal |= is_syncfs and self._mode == "ack"
        meters = self._meters
        (meters.syncfs if is_syncfs else meters.fdatasync).observe(duration_s)
        meters.commit_logs.observe(len(flushes))
        meters.commit_records.observe(sum([flush[2] - flush[0].flushed_end_offset for flush in flushes]))

    def fail(self, error: BaseException) -> None:
        """A sync has failed, one of these or elsewhere in the folder: nothing is synced any more."""
        first = self.failed is None
        if not isinstance(error, OSError):
            error = OSError(f"sync failed: {error!r}")
        self.failed = self.failed or error
        syncing = (flush.log for flush in chain(*self._under_way.values()))
        logs = (*syncing, *self._ready, *self._later)
        self._later.clear()
        self._ready.clear()
        for log in logs:
            log.fail_flush_waits(error)
        if first:
            self._on_fatal(error)


def _sync(fs: FileSystem, clock: Clock, folder: str | None, files: Sequence[File]) -> tuple[bool, float]:
    """Blocking. Returns whether it was one syncfs, and how long it took."""
    started_s = clock.monotonic()
    is_everything = folder is not None and fs.sync_all(folder)
    if not is_everything:
        for file in files:
            file.sync()
    return is_everything, clock.monotonic() - started_s
