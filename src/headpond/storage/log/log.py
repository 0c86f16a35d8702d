"""The log of one partition on this broker: append, read, flush, and the changes of its files.

    log start <= flushed end <= log end          segments: [finished] [finished] ... [active]

The loop owns everything in here. Appends and reads of what is in memory are plain calls that never wait; whatever
opens, creates, syncs, renames or truncates a file runs in a worker, one such change of a log at a time, while appends
are refused (``can_append``) and reads go on. A new log touches no file: its folder appears with its first append
(``make_room``).

A crash keeps a prefix of the appended batches that holds everything up to the flushed end. A failed write leaves
nothing visible: the half-written tail is cut off before the next append.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from headpond.config.log import LogConfig
from headpond.model import StorageFailed, TopicId, TopicPartition, invariant
from headpond.model.waits import OffsetWaits
from headpond.ports import Clock, FileSystem, Random, Tasks, Workers
from headpond.protocol.records.header import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    LEADER_EPOCH_POSITION,
    BatchHeader,
    read_header,
    stamp_epoch,
    stamp_offset,
)
from headpond.storage.admission.deep import needs_deep_look
from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.commit.group_commit import CLEAN, GroupCommit
from headpond.storage.commit.journal import NOTED_BATCH_BYTES_MAX, Journal
from headpond.storage.log import changes as log_changes
from headpond.storage.log.epochs import LeaderEpochs
from headpond.storage.log.lookup import Read
from headpond.storage.log.offset_index import POSITION_MAX, RELATIVE_OFFSET_MAX
from headpond.storage.log.reading import LogReads
from headpond.storage.log.segment import Segment, SegmentLimits
from headpond.storage.log.segment_files import FolderTaken, SyncFailed, sync_files
from headpond.storage.log.segments import Segments
from headpond.storage.looks.looks import Looks
from headpond.storage.meters import StorageMeters
from headpond.storage.producers.producers import ProducerStates
from headpond.storage.producers.state import CompletedTxn
from headpond.storage.producers.txn_index import AbortedTxn, AbortedTxns
from headpond.storage.recovery.recovery import Recovered

__all__ = ["Appended", "Flush", "LogPorts", "PartitionLog", "Read"]

T = TypeVar("T")
_log = logging.getLogger(__name__)
_new = tuple.__new__  # skips the NamedTuple constructor's argument handling

CHECKPOINT_BYTES = 24 * 1024 * 1024
"""A log that grew by this much asks for a checkpoint before its half second is over."""
SCAN_BYTES_MAX = 60 * 1024 * 1024
"""Appends wait for the checkpoint when this much is left to recovery. With the batch that goes beyond it and two in a
step of the index that is less than the 64 MiB that are promised, for batches of up to a MiB."""


class Appended(NamedTuple):
    base_offset: int
    last_offset: int
    append_time_ms: int  # -1 unless the topic's timestamps are append times


@dataclass(frozen=True, slots=True)
class LogPorts:
    """What every log of a data folder shares."""

    data_dir: str
    fs: FileSystem
    clock: Clock
    workers: Workers
    tasks: Tasks
    random: Random
    commits: GroupCommit
    journal: Journal
    looks: Looks
    on_changed: Callable[[PartitionLog], None]  # it wants a place in the next checkpoint round
    on_checkpoint_due: Callable[[], None]  # the round should not wait for its time
    checkpointed: Callable[[PartitionLog], Awaitable[None]]  # waits for a round that it has a place in
    lower_recovery_point: Callable[[PartitionLog, int], Awaitable[None]]  # durable when it returns
    leave_journal: Callable[[PartitionLog], Awaitable[None]]  # durable when it returns
    save_log_starts: Callable[[], Awaitable[None]]  # durable when it returns
    remove_later: Callable[[list[str], int], None]  # paths, after so many ms
    checkpoints_settled: Callable[[], Awaitable[None]]  # waits for the round under way
    folder_is_free: Callable[[TopicPartition], Awaitable[None]]
    # waits until a former topic of that name has left the folder and the checkpoints
    meters: StorageMeters = field(default_factory=StorageMeters)


class Flush(NamedTuple):
    """A sync under way: which segments (pinned until it returns), and what is durable then."""

    log: PartitionLog
    segments: Sequence[Segment]
    end_offset: int
    active: Segment
    active_bytes: int


def _nothing(_: int) -> None:
    pass


class PartitionLog:
    __slots__ = (
        "_aborted",
        "_change",
        "_limits",
        "accepts",
        "active",
        "bytes_before_checkpoint",
        "bytes_since_checkpoint",
        "bytes_since_snapshot",
        "committed_end_offset",
        "config",
        "epochs",
        "epochs_written",
        "failure",
        "flush_messages",
        "flush_state",
        "flush_waits",
        "flushed_end_offset",
        "flushed_segment",
        "flushed_segment_bytes",
        "is_being_cut",
        "is_closed",
        "is_closing",
        "is_held",
        "is_interrupted",
        "is_torn",
        "is_unnoted",
        "journaled",
        "log_end_offset",
        "log_start_offset",
        "max_timestamp",
        "needs_deep_look",
        "offset_for_timestamp",
        "on_flushed",
        "on_log_start",
        "path",
        "plan",
        "ports",
        "producers",
        "read",
        "read_cold",
        "reads",
        "recovery_point",
        "roll_is_due",
        "scan_room_bytes",
        "segments",
        "size_bytes",
        "snapshot_end_offset",
        "snapshots_due",
        "topic_id",
        "tp",
        "truncations",
        "unsaved",
        "unsynced",
    )

    def __init__(self, tp: TopicPartition, topic_id: TopicId, config: LogConfig, ports: LogPorts) -> None:
        self.tp = tp
        self.topic_id = topic_id
        self.config = config
        self.needs_deep_look = needs_deep_look(config)
        self._limits = SegmentLimits.of(config)
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.flushed_end_offset = 0
        self.flushed_segment: Segment | None = None  # which that offset lies in, if it is known, and where there
        self.flushed_segment_bytes = 0
        self.flush_state = CLEAN
        self.flush_messages = config.flush_messages
        self.recovery_point = 0  # as the checkpoint file says
        self.epochs = LeaderEpochs()
        self.producers = ProducerStates(tp)
        self.aborted = []
        self.size_bytes = 0
        self.is_closing = False  # the last checkpoint is made: nothing may change any more
        self.is_closed = False
        self.on_flushed: Callable[[int], None] = _nothing
        self.on_log_start: Callable[[int], None] = _nothing
        # Retention stays below this; whoever knows the high watermark sets it.
        self.committed_end_offset: Callable[[], int] = lambda: self.flushed_end_offset
        self.flush_waits = OffsetWaits()

        self.ports = ports
        self.path = f"{ports.data_dir}/{tp}"
        self.segments = Segments()
        self.active: Segment | None = None
        self.accepts = True  # False while its files are being changed, or are to be repaired
        self.is_torn = False  # a write failed: the file may be longer than the log
        self.roll_is_due = False
        self.truncations = 0
        self.is_being_cut = False  # no checkpoint meanwhile: it would note what is about to go
        self.is_held = False  # no checkpoint meanwhile: files that it would write to are being renamed
        self.is_interrupted = False  # a change was cut off by a shutdown: files and memory may differ
        self.failure: BaseException | None = None
        self.bytes_since_checkpoint = 0  # since one began
        self.bytes_before_checkpoint = 0  # recovery would read these too: its snapshot is older, or it is not finished
        self.scan_room_bytes = SCAN_BYTES_MAX  # for the bytes since
        self.bytes_since_snapshot = 0
        self.snapshot_end_offset = 0
        self.epochs_written = -1
        self.snapshots_due: list[tuple[int, bytes]] = []
        self.unsynced: list[Segment] = []  # appended to since a flush began
        self.journaled: list[Segment] = []  # those with what may be durable by the journal only
        self.is_unnoted = False  # what was appended since a flush of its own files began is not all in the journal
        self.unsaved: list[Segment] = []  # their indexes on disk lack entries
        self._change = asyncio.Lock()
        self.reads = LogReads(self)
        self.plan = self.reads.plan
        self.read_cold = self.reads.read_cold
        self.offset_for_timestamp = self.reads.offset_for_timestamp
        self.max_timestamp = self.reads.max_timestamp

    @property
    def aborted(self) -> AbortedTxns:
        """Aborted transactions of all segments, in the order of their ends."""
        return self._aborted

    @aborted.setter
    def aborted(self, entries: Iterable[AbortedTxn]) -> None:
        self._aborted = AbortedTxns(entries)

    def __repr__(self) -> str:
        return f"PartitionLog({self.tp}, {self.log_start_offset}..{self.log_end_offset})"

    def reconfigure(self, config: LogConfig) -> None:
        self.config = config
        self.needs_deep_look = needs_deep_look(config)
        self.flush_messages = config.flush_messages
        self._limits = SegmentLimits.of(config)

    # --- append -------------------------------------------------------------------------------------------------------

    def can_append(self, size_bytes: int, max_timestamp_ms: int, now_ms: int) -> bool:
        """Whether ``append`` may be called now; if not, ``await make_room(...)`` first and ask again."""
        active = self.active
        return (
            active is not None
            and self.accepts
            and not self.roll_is_due
            and self.bytes_since_checkpoint < self.scan_room_bytes
            and active.has_room(size_bytes, max_timestamp_ms, now_ms, self._limits)
        )

    def can_hold(self, size_bytes: int) -> bool:
        """Whether so many bytes fit into a file that Kafka can open, more than was asked room for. If not, the next
        ``can_append`` wants a new segment."""
        if self.active is not None and self.active.size_bytes + size_bytes > POSITION_MAX:
            self.roll_is_due = True
            return False
        return True

    def append(self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> Appended:
        """Give the admitted ``batch`` the next offsets (in place) and write it. ``StorageFailed``: nothing was
        appended."""
        base_offset = self.log_end_offset
        last_offset = self._write(batch, header, base_offset, leader_epoch)
        if header.producer_id < 0:
            self.producers.end_offset = last_offset + 1
        elif header.attributes & CONTROL_BIT:
            self._note_end(self.producers.replay(batch, read_header(batch), now_ms))
        else:
            self.producers.update(header, base_offset, now_ms)
        append_time_ms = header.max_timestamp if header.attributes & APPEND_TIME_BIT else -1
        return _new(Appended, (base_offset, last_offset, append_time_ms))

    def append_copy(self, batch: memoryview, header: BatchHeader, *, now_ms: int) -> None:
        """Write a leader's batch as it is: its offsets and epoch are given. Offsets may leave out some, never go
        back."""
        invariant(header.base_offset >= self.log_end_offset, "a copied batch goes back", self, header.base_offset)
        self._write(batch, header, header.base_offset, header.leader_epoch)
        self._note_end(self.producers.replay(batch, header, now_ms))

    def _note_end(self, ended: CompletedTxn | None) -> None:
        if ended is not None and ended.is_aborted:
            self.aborted.append(AbortedTxn(*ended[:3], ended.last_stable_offset))

    def _write(self, batch: memoryview, header: BatchHeader, base_offset: int, leader_epoch: int) -> int:
        """Stamp the batch, write it and note it everywhere; returns its last offset."""
        active = self.active
        last_offset = base_offset + header.last_offset_delta
        if active is None or not self.accepts:
            raise StorageFailed(message=f"{self.tp} takes no appends now: {self.failure or 'its files are changing'}")
        if last_offset - active.base_offset > RELATIVE_OFFSET_MAX:
            self.roll_is_due = True
            raise StorageFailed(message=f"{self.tp} needs a new segment for offset {last_offset}")
        stamp_offset(batch, 0, base_offset)
        stamp_epoch(batch, LEADER_EPOCH_POSITION, leader_epoch)
        try:
            active.file.write(batch)  # type: ignore[union-attr]
        except OSError as error:
            self.is_torn, self.accepts = True, False
            self.ports.tasks.spawn(f"repair {self.tp}", self._repair())
            raise StorageFailed(message=f"writing to {self.tp} failed: {error}") from error
        size_bytes = header.batch_length + 12
        journal = self.ports.journal
        if journal.is_on and size_bytes <= NOTED_BATCH_BYTES_MAX and base_offset == self.log_end_offset:
            journal.note(self, batch)
        else:
            self.is_unnoted = True
        active.appended(size_bytes, last_offset, header.max_timestamp, self.config.index_interval_bytes)
        self.log_end_offset = last_offset + 1
        self.size_bytes += size_bytes
        if leader_epoch > self.epochs.latest_epoch:
            self.epochs.assign(leader_epoch, base_offset)
        if not active.unsynced:
            active.unsynced = True
            self.unsynced.append(active)
        grown = self.bytes_since_checkpoint
        self.bytes_since_checkpoint = grown + size_bytes
        if not grown:
            self.ports.on_changed(self)
        elif grown >= CHECKPOINT_BYTES - size_bytes:
            self.ports.on_checkpoint_due()
        return last_offset

    async def _repair(self) -> None:
        """Cut off what a failed write left: the space may be somebody's. If it fails, the next append tries again."""

        async def work() -> None:
            if self.is_torn:
                await log_changes.repair(self)

        try:
            await self.change("repair", work)
        except StorageFailed as error:
            _log.warning("the half-written end of %s could not be cut off yet: %s", self.tp, error)

    async def make_room(self, size_bytes: int, max_timestamp_ms: int, now_ms: int) -> None:
        """Do what ``can_append`` waits for: a checkpoint, the first files, a new segment, a repair. Raises
        ``StorageFailed``."""

        async def work() -> None:
            if self.is_torn:
                await log_changes.repair(self)
            if self.active is None:
                await log_changes.create(self, now_ms)
            elif self.roll_is_due or not self.active.has_room(size_bytes, max_timestamp_ms, now_ms, self._limits):
                await log_changes.roll(self, now_ms)

        if self.bytes_since_checkpoint >= self.scan_room_bytes:
            await self._shorten_scan()
        if not self.can_append(size_bytes, max_timestamp_ms, now_ms):
            await self.change("make room", work)

    async def _shorten_scan(self) -> None:
        """A crash now would leave recovery more to read than is promised."""
        self.require_working()
        await self.ports.checkpointed(self)
        self.require_working()
        if self.bytes_before_checkpoint >= log_checkpoint.SNAPSHOT_BYTES:
            raise StorageFailed(message=f"the checkpoint of {self.tp} could not be written")

    # --- changes of its files -----------------------------------------------------------------------------------------

    async def roll(self) -> None:
        """Finish the active segment, if it holds anything."""
        await self.change("roll", lambda: log_changes.roll(self, self.ports.clock.now_ms()))

    async def truncate_to(self, end_offset: int) -> None:
        """Cut off the batches that reach ``end_offset`` or beyond; durable when it returns."""
        await self.change("truncate", lambda: log_changes.truncate(self, end_offset))

    async def restart_at(self, offset: int) -> None:
        """Give up everything and begin anew, empty, at ``offset``: a follower whose leader no longer has its end."""
        await self.change("restart", lambda: log_changes.restart(self, offset))

    async def advance_log_start(self, offset: int) -> None:
        """The log begins at ``offset`` now; durable when it returns. Segments below go with the next retention run."""
        try:
            if self.ports.journal.has_entries_of(self):
                await self.sync_own_files()
            if offset <= self.log_start_offset:
                return
            log_changes.advance_log_start(self, offset)
            await self.ports.save_log_starts()
        except OSError as error:
            raise StorageFailed(message=f"{self.tp}: the new log start could not be written: {error}") from error

    @property
    def is_elsewhere(self) -> bool:
        """In another file system than the data folder."""
        active = self.active
        return active is not None and active.file is not None and active.file.device != self.ports.commits.device

    async def sync_own_files(self) -> None:
        """Of what is durable, all is from here on without the journal: recovery looks at the log's own files first, and
        a start behind their end would hide what the journal has to add to them."""
        segments = [segment for segment in self.segments if segment.end_offset > self.recovery_point]
        for segment in segments:
            segment.pin()
        try:
            await self.ports.workers.run(sync_files, [segment.file for segment in segments if segment.file is not None])
        except SyncFailed as error:
            self.ports.commits.fail(error)
            raise
        finally:
            for segment in segments:
                segment.unpin()

    async def delete_old_segments(self, now_ms: int) -> int:
        """Apply retention below the high watermark; returns how many segments went."""
        if self.active is None or self.failure is not None:
            return 0
        return await log_changes.delete_old_segments(self, now_ms)

    async def change(self, name: str, work: Callable[[], Awaitable[T]], *, refuses_appends: bool = True) -> T:
        """Run one change of the files. It is finished even if the caller stops waiting (its connection was closed)."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            async with self._change:
                try:
                    result = await self._guarded(work, refuses_appends)
                except Exception as error:
                    if not done.done():
                        done.set_exception(error)
                else:
                    if not done.done():
                        done.set_result(result)

        self.ports.tasks.spawn(f"{name} {self.tp}", run())
        return await done

    async def _guarded(self, work: Callable[[], Awaitable[T]], refuses_appends: bool) -> T:
        """Appends are refused meanwhile, if the change is about the active segment, and afterwards if the file still
        needs a repair."""
        self.require_working()
        if refuses_appends:
            self.accepts = False
        try:
            return await work()
        except asyncio.CancelledError:
            self.is_interrupted = True
            raise
        except SyncFailed as error:
            self.ports.commits.fail(error)
            raise StorageFailed(message=f"{self.tp}: {error}") from error
        except FolderTaken as error:
            raise StorageFailed(message=str(error)) from error
        except OSError as error:
            raise StorageFailed(message=f"{self.tp}: {error}") from error
        finally:
            self.is_being_cut = self.is_held = False
            self.accepts = not (self.is_torn or self.is_closing or self.is_closed or self.failure is not None)

    async def hold_checkpoints(self) -> None:
        """Within a change: from here to its end no checkpoint round writes into the folder."""
        await self.ports.checkpoints_settled()
        self.is_held = True  # at once: no round can have begun in between

    def require_working(self) -> None:
        if self.failure is not None:
            raise StorageFailed(message=f"the data folder failed: {self.failure}")
        if self.is_closing or self.is_closed:
            raise StorageFailed(message=f"{self.tp} is closed")

    def fail(self, error: BaseException) -> None:
        """The data folder is given up: nothing is written any more."""
        self.failure = error
        self.accepts = False
        self.fail_flush_waits(error)

    def begin_close(self) -> None:
        """The last checkpoint is about to be made. What is being changed or flushed comes to its end, nothing else
        begins."""
        self.is_closing, self.accepts = True, False

    def refuse(self) -> None:
        """The log goes away: nothing new begins."""
        self.is_closed, self.accepts = True, False
        self.fail_flush_waits(StorageFailed(message=f"{self.tp} is closed"))

    async def stop(self) -> None:
        """The log goes away: wait for what runs, then close its files."""
        self.refuse()
        async with self._change:
            self.close()

    def close(self) -> None:
        """Let go of the files. What is not flushed is left to the operating system."""
        self.is_closed, self.accepts = True, False
        self.active = None
        self.reads.changed(list(self.segments))

    # --- flush --------------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until everything appended so far is durable."""
        await self.ports.commits.flushed(self)

    def begin_flush(self) -> Flush | None:
        """For the group commit: what to sync now, if anything."""
        if not self.unsynced or self.active is None:
            return None
        segments, self.unsynced = self.unsynced, []
        if self.journaled:  # a later segment that is whole is worth nothing behind one that is not
            segments += [segment for segment in self.journaled if segment not in segments]
            self.journaled.clear()
        self.is_unnoted = False
        for segment in segments:
            segment.unsynced = False
            segment.pins += 1
        active = self.active
        return _new(Flush, (self, segments, self.log_end_offset, active, active.size_bytes))

    def begin_journaled_flush(self) -> Flush | None:
        """The same when the journal is what is synced."""
        if not self.unsynced or self.active is None:
            return None
        segments, self.unsynced = self.unsynced, []
        for segment in segments:
            segment.unsynced = False
            if segment not in self.journaled:
                self.journaled.append(segment)
        active = self.active
        return _new(Flush, (self, (), self.log_end_offset, active, active.size_bytes))

    def end_flush(self, flush: Flush) -> None:
        """For the group commit: that sync has returned."""
        _, _, end_offset, active, active_bytes = flush
        if end_offset <= self.flushed_end_offset:
            return
        if end_offset > self.log_end_offset:
            invariant(False, "flushed beyond the end", self, end_offset)
        self.flushed_end_offset = end_offset
        self.flushed_segment = active
        self.flushed_segment_bytes = active_bytes
        if self.flush_waits:
            self.flush_waits.reach(end_offset)
        self.on_flushed(end_offset)

    def fail_flush_waits(self, error: BaseException) -> None:
        self.flush_waits.fail(StorageFailed(message=f"{self.tp}: {error}"))

    def leave_to_recovery(self, size_bytes: int) -> None:
        """A crash at the last checkpoint would have recovery read this much."""
        self.bytes_before_checkpoint = size_bytes
        self.scan_room_bytes = SCAN_BYTES_MAX - size_bytes

    def adopt(self, recovered: Recovered) -> None:
        """Take over what recovery found on disk; everything it kept is durable."""
        log_changes.adopt(self, recovered)
