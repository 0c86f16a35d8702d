"""One partition, as this broker leads it: who may append, what is visible.

Pure: it owns no task, socket or file. It decides leadership and the high watermark; the log stores.

    log start <= last stable offset <= high watermark <= flushed end (flush=ack) <= log end

With ``flush=ack`` the high watermark follows the flushed end: nothing is visible, and nothing acknowledged with
acks=all, that a power cut could take back. With ``flush=interval|os`` it follows the log end, as Kafka's does.

A crash forgets the high watermark; after recovery everything that the log kept is flushed, and a single replica's high
watermark is its log end.
"""

from __future__ import annotations

from collections.abc import Callable

from headpond.model import BrokerError, ErrorCode, NotLeader, TopicPartition, invariant
from headpond.model.waits import Awaited, OffsetWaits, Waiter
from headpond.protocol.records.control import EndTxnMarker, build_end_txn_marker
from headpond.protocol.records.header import BatchHeader, read_header
from headpond.replication.deadlines import Deadlines
from headpond.storage.commit.group_commit import GroupCommit
from headpond.storage.log.log import Appended, PartitionLog
from headpond.storage.log.segment import Segment

NO_EPOCH = -1
MARKER_BYTES = 128
"""More than a marker takes."""


def _nobody_listens() -> None:
    pass


class Partition:
    __slots__ = (
        "_commits",
        "_deadlines",
        "_follows_flush",
        "_waits",
        "high_watermark",
        "is_leader",
        "leader_epoch",
        "log",
        "on_high_watermark",
        "on_log_start",
        "tp",
    )

    def __init__(self, log: PartitionLog, commits: GroupCommit, deadlines: Deadlines, *, follows_flush: bool) -> None:
        self.tp: TopicPartition = log.tp
        self.log = log
        self.is_leader = False
        self.leader_epoch = NO_EPOCH
        self.high_watermark = log.log_end_offset
        log.producers.on_high_watermark(self.high_watermark)  # transactions that recovery saw end are decided
        self.on_high_watermark: Callable[[], None] = _nobody_listens
        self.on_log_start: Callable[[], None] = _nobody_listens
        self._commits = commits
        self._follows_flush = follows_flush
        self._deadlines = deadlines
        self._waits = OffsetWaits()
        log.on_flushed = self._advance
        log.on_log_start = self._log_start_moved
        log.committed_end_offset = lambda: self.high_watermark

    def lead(self, leader_epoch: int) -> None:
        """Become the leader of this epoch, or go on in a later one (KIP-101: the epoch starts at the log's end)."""
        invariant(
            leader_epoch >= self.leader_epoch, "a leader epoch went back", self.tp, leader_epoch, self.leader_epoch
        )
        if self.is_leader and leader_epoch == self.leader_epoch:
            return
        self.is_leader = True
        self.leader_epoch = leader_epoch
        self.log.epochs.assign(leader_epoch, self.log.log_end_offset)

    def resign(self, leader_epoch: int) -> None:
        """Stop leading. Whoever waits is told by ``fail_waits``, once all who have to know of it do."""
        self.is_leader = False
        self.leader_epoch = max(self.leader_epoch, leader_epoch)

    # --- waiting

    def when_committed(self, end_offset: int, waiter: Waiter, timeout_ms: int | None = None) -> None:
        """Tell ``waiter``, now or later, that everything below ``end_offset`` is committed: below the high watermark;
        or that it fails: NOT_LEADER_OR_FOLLOWER when this broker stops leading first, REQUEST_TIMED_OUT (outcome
        unknown: it may be committed later)."""
        if self.high_watermark >= end_offset:
            waiter.reached()
            return
        self._waits.add(end_offset, waiter)
        if timeout_ms is not None:
            self._deadlines.begin(waiter, timeout_ms)

    async def committed(self, end_offset: int, timeout_ms: int | None = None) -> None:
        """The same for a coroutine, which gets the failure raised."""
        if self.high_watermark < end_offset:
            awaited = Awaited()
            self.when_committed(end_offset, awaited, timeout_ms)
            await awaited.future

    def fail_waits(self) -> None:
        """The partition is gone or led elsewhere: nobody will be answered by waiting."""
        for _, waiter in self._waits:
            self._deadlines.end(waiter)
        self._waits.fail(NotLeader(message="the leader moved before that was committed"))

    # --- what is visible

    @property
    def last_stable_offset(self) -> int:
        """Below it no transaction is open: what a read_committed consumer may see. Never below the log's start, though
        the open transaction may have begun there: its first records are gone."""
        first_open = self.log.producers.first_unstable_offset
        if first_open is None:
            return self.high_watermark
        return min(max(first_open, self.log.log_start_offset), self.high_watermark)

    def append(
        self, batch: memoryview, header: BatchHeader, now_ms: int, is_urgent: bool, is_coordinator: bool = False
    ) -> Appended:
        """Append one admitted batch; needs ``log.can_append``. ``is_urgent``: somebody waits for the flush.
        ``is_coordinator``: written on behalf of a producer, whose sequences count its own batches only.
        Raises ``NotLeader``, ``StorageFailed`` or what the producer's state says (45, 47)."""
        if not self.is_leader:
            raise NotLeader(message=f"this broker does not lead {self.tp}")
        if header.producer_id >= 0:
            if is_coordinator:
                self.log.producers.check_on_behalf(header)
            else:
                original = self.log.producers.check(header)
                if original is not None:  # a retry of what is stored already
                    return Appended(original.base_offset, original.last_offset, original.timestamp)
        log = self.log
        appended = log.append(batch, header, self.leader_epoch, now_ms)
        if self._follows_flush or self.waits_for_flush:
            self._commits.mark_dirty(log, is_urgent)
        else:
            self._commits.mark_dirty(log)  # whoever waits does not wait for that
            self._advance(log.log_end_offset)
        return appended

    def end_transaction(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        is_abort: bool,
        coordinator_epoch: int,
        raises_epoch: bool,
        now_ms: int,
    ) -> Appended:
        """Append a transaction coordinator's marker; needs ``log.can_append`` of ``MARKER_BYTES``. ``raises_epoch``: by
        the rules of KIP-890's second version. Raises ``NotLeader``, ``StorageFailed``, INVALID_PRODUCER_EPOCH or
        TRANSACTION_COORDINATOR_FENCED."""
        if not self.is_leader:
            raise NotLeader(message=f"this broker does not lead {self.tp}")
        batch = memoryview(
            build_end_txn_marker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                is_abort=is_abort,
                coordinator_epoch=coordinator_epoch,
                timestamp=now_ms,
            )
        )
        header = read_header(batch)
        marker = EndTxnMarker(is_abort, coordinator_epoch, now_ms)
        self.log.producers.check_marker(header, marker, raises_epoch=raises_epoch)
        return self.append(batch, header, now_ms, is_urgent=True, is_coordinator=True)

    @property
    def waits_for_flush(self) -> bool:
        """Whether the high watermark follows the flushed end: by ``headpond.flush``, or because the topic wants every
        batch flushed (``flush.messages`` of 1)."""
        return self._follows_flush or self.log.config.flush_messages <= 1

    @property
    def end_offset_when_flushed(self) -> int:
        """Where the high watermark will be when the flush under way is done, if nothing but that holds it back."""
        return self.log.log_end_offset if self.waits_for_flush else self.high_watermark

    @property
    def stable_end_offset_when_flushed(self) -> int:
        """The same for the last stable offset."""
        first_open = self.log.producers.first_undecided_offset
        if first_open is None:
            return self.end_offset_when_flushed
        return min(max(first_open, self.log.log_start_offset), self.end_offset_when_flushed)

    @property
    def visible_end(self) -> tuple[Segment | None, int]:
        """Which segment the high watermark lies in, and how many of its bytes are below it. None: that is not known."""
        log = self.log
        if self.high_watermark == log.log_end_offset:
            active = log.active
            return (None, 0) if active is None else (active, active.size_bytes)
        if self.high_watermark == log.flushed_end_offset:
            return log.flushed_segment, log.flushed_segment_bytes
        return None, 0

    async def settle(self) -> None:
        """Wait for the flush of what is appended now, so that a question about the end counts what was acknowledged
        before it, with acks=1 too. Raises ``StorageFailed``."""
        if self.waits_for_flush and self.high_watermark < self.log.log_end_offset:
            await self.log.flush()

    def hurry(self) -> None:
        """Somebody waits for what is not flushed yet."""
        if self.high_watermark < self.log.log_end_offset:
            self._commits.hurry(self.log)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """KIP-320: refuse a client whose view of the leadership is older or newer than ours."""
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
            raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def require_leader(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Kafka's order: the epoch first, so that a client with a stale view learns that rather than "not leader"."""
        self.check_epoch(current_leader_epoch)
        if not self.is_leader:
            raise NotLeader()

    def _advance(self, high_watermark: int) -> None:
        if high_watermark > self.high_watermark:
            if high_watermark > self.log.log_end_offset:
                invariant(False, "high watermark above the log's end", self.tp)
            self.high_watermark = high_watermark
            producers = self.log.producers
            if producers.unreplicated:
                producers.on_high_watermark(high_watermark)
            waits = self._waits
            while waits and waits[0][0] <= high_watermark:
                waiter = waits.popleft()[1]
                self._deadlines.end(waiter)
                waiter.reached()
            self.on_high_watermark()

    def _log_start_moved(self, log_start_offset: int) -> None:
        if self.high_watermark < log_start_offset:
            self.high_watermark = log_start_offset
        self.on_log_start()
