"""Appends, on the loop: everything that threads have handed over since the last turn goes into the log together.

Small records become one batch, in the order in which they came; a batch of ``append_many`` stays as it is. One sync
serves all that was written before it began; while it runs, small records gather for the next batch. Whoever waits is
told when a record is what the log calls visible: durable (flush="ack"), or written.

    threads --put--> [record record batch record ...] --turn--> log.append, mark dirty --sync--> visible, told

A crash keeps whatever was told, and perhaps more: what was written and not synced is there, or a prefix of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from headpond.log.errors import LogClosed, LogFailed, NotAppended
from headpond.log.given import Sized
from headpond.log.visible import Visible
from headpond.model import StorageFailed
from headpond.ports import Clock, Tasks
from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.header import BatchHeader, read_header
from headpond.protocol.records.record import Record
from headpond.runtime.handover import Handover, Reply
from headpond.storage.commit.group_commit import GroupCommit
from headpond.storage.log.log import PartitionLog
from headpond.storage.log.segment import Segment

BATCH_BYTES_MAX = 32 * 1024
"""Unless one record is larger; and no more than a segment. A random read reads, checks and walks over one batch: that
of 32 KB takes 20 us."""

GATHERING_TURNS_MAX = 32
"""Of the loop, some 3 us each where nobody comes: how long a sync is held back for threads that may append again."""
GATHERING_FROM_S = 0.001
"""Where a sync takes less it is not worth it. Measured with 16 threads: 12 of them in each sync, and 8 without it, for
0.3 ms more between two syncs."""

NO_BATCH = bytearray()
_new = tuple.__new__


class Chain:
    """The batches of one ``append_many``: when one was refused none comes after it, or the log would have the end of a
    list without its middle."""

    __slots__ = ("refused",)

    def __init__(self) -> None:
        self.refused: StorageFailed | None = None


class Pending(Reply[int]):
    """What one thread has handed over; the answer is the first offset."""

    __slots__ = ("batch", "chain", "sized")

    def __init__(self, sized: Sized | None, batch: bytearray = NO_BATCH, chain: Chain | None = None) -> None:
        super().__init__()
        self.sized = sized  # None: it is the batch
        self.batch = batch
        self.chain = chain


class Batch(NamedTuple):
    data: bytearray
    header: BatchHeader
    waiting: Sequence[Pending]  # one for each record, or one for all


class Written(NamedTuple):
    """In the log, and not told yet."""

    base_offset: int
    end_offset: int
    segment: Segment
    end_bytes: int  # of the segment
    waiting: Sequence[Pending]


def batch_of(records: Sequence[Record]) -> bytearray:
    """The log gives it its offsets."""
    return build_batch([_new(Record, (number, *record[1:])) for number, record in enumerate(records)])


class Appends:
    def __init__(
        self,
        log: PartitionLog,
        *,
        commits: GroupCommit,
        clock: Clock,
        tasks: Tasks,
        visible: Visible,
        batch_bytes_max: int,
        is_durable_when_told: bool,
    ) -> None:
        self._log = log
        self._commits = commits
        self._clock = clock
        self._tasks = tasks
        self._visible = visible
        self._batch_bytes_max = batch_bytes_max
        self._is_durable_when_told = is_durable_when_told
        self._epoch = max(0, log.epochs.latest_epoch)
        self._written: deque[Written] = deque()
        self._due: list[Written] = []  # visible, and told in this turn of the loop or the next
        self._is_making_room = False
        self._is_gathering = False
        self._began_s = 0.0  # the oldest of what is written and not told was written then
        self.handover: Handover[Pending]
        log.on_flushed = self._flushed

    # --- the turn -----------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        if self._is_gathering:
            return
        has_written = False
        while not self._is_making_room and (batch := self._next()) is not None:
            now_ms = self._clock.now_ms()
            if self._log.can_append(len(batch.data), batch.header.max_timestamp, now_ms):
                has_written |= self._write(batch, now_ms)
            else:
                self._is_making_room = True
                self._tasks.spawn("make room in the log", self._write_when_there_is_room(batch))
        if has_written:
            self._have_synced()

    def _have_synced(self) -> None:
        self._commits.mark_dirty(self._log, urgent=self._is_durable_when_told)
        if not self._is_durable_when_told:
            self._tell_written()

    def _next(self) -> Batch | None:
        first = self.handover.peek()
        if first is None:
            return None
        if first.sized is None:
            self.handover.next()
            return Batch(first.batch, read_header(first.batch), (first,))
        if self._written and self._is_durable_when_told:
            return None  # no sync begins before the one under way has returned: more will have come by then
        self.handover.next()
        waiting, records, size_bytes = [first], [first.sized.record], first.sized.size_bytes
        while (following := self.handover.peek()) is not None and following.sized is not None:
            size_bytes += following.sized.size_bytes
            if size_bytes > self._batch_bytes_max:
                break
            waiting.append(following)
            records.append(following.sized.record)
            self.handover.next()
        data = batch_of(records)
        return Batch(data, read_header(data), waiting)

    def _write(self, batch: Batch, now_ms: int) -> bool:
        chain = batch.waiting[0].chain
        if chain is not None and chain.refused is not None:
            self._refuse(batch.waiting, chain.refused)
            return False
        try:
            appended = self._log.append(memoryview(batch.data), batch.header, self._epoch, now_ms)
        except StorageFailed as failure:
            self._refuse(batch.waiting, failure)
            return False
        except Exception as error:  # a bug: it must not leave anybody waiting for ever
            _fail(batch.waiting, partial(RuntimeError, f"the record could not be written: {error!r}"))
            raise
        if not self._written:
            self._began_s = self._clock.monotonic()
        active = self._log.active
        assert active is not None
        self._written.append(
            Written(appended.base_offset, appended.last_offset + 1, active, active.size_bytes, batch.waiting)
        )
        return True

    async def _write_when_there_is_room(self, batch: Batch) -> None:
        """A new segment, a checkpoint, a repair after a full disk: the others wait in their order meanwhile."""
        size_bytes, max_timestamp = len(batch.data), batch.header.max_timestamp
        try:
            while not self._log.can_append(size_bytes, max_timestamp, self._clock.now_ms()):
                await self._log.make_room(size_bytes, max_timestamp, self._clock.now_ms())
        except StorageFailed as failure:
            self._refuse(batch.waiting, failure)
        except BaseException:
            _fail(batch.waiting, lambda: LogClosed("the log was closed before the record was written"))
            raise
        else:
            if self._write(batch, self._clock.now_ms()):
                self._have_synced()
        finally:
            self._is_making_room = False
        self.turn()

    # --- what becomes of it -------------------------------------------------------------------------------------------

    def _flushed(self, end_offset: int) -> None:
        if not self._is_durable_when_told:
            return
        took_s = self._clock.monotonic() - self._began_s
        while self._written and self._written[0].end_offset <= end_offset:
            self._due.append(self._written.popleft())
        if took_s >= GATHERING_FROM_S and self._due and len(self.handover) and not self._written:
            self._is_gathering = True
            told = self._tell_due()
            self._gather(told + len(self.handover), GATHERING_TURNS_MAX)
        else:  # the disk goes on first: those who are told want the interpreter at once
            self.turn()
            asyncio.get_running_loop().call_soon(self._tell_due)

    def _gather(self, expected: int, turns: int) -> None:
        """Those who were just told are about to append again, if they are threads in loops. Without this they and the
        others would take turns, and each sync would serve half of them. Each turn of the loop lets one of them run."""
        if len(self.handover) < expected and turns:
            asyncio.get_running_loop().call_soon(self._gather, expected, turns - 1)
            return
        self._is_gathering = False
        self.turn()

    def _tell_written(self) -> None:
        """Without a sync: what is written is visible."""
        self._due.extend(self._written)
        self._written.clear()
        self._tell_due()

    def _tell_due(self) -> int:
        """First it can be read, then whoever wrote it is told so; how many that are."""
        if not self._due:
            return 0
        told, self._due = self._due, []
        last = told[-1]
        self._visible.show(last.end_offset, last.segment, last.end_bytes)
        for written in told:
            for number, pending in enumerate(written.waiting):
                pending.give(written.base_offset + number)
        return sum(len(written.waiting) for written in told)

    def _refuse(self, waiting: Sequence[Pending], failure: StorageFailed) -> None:
        for pending in waiting:
            if pending.chain is not None:
                pending.chain.refused = failure
        if (cause := self._log.failure) is not None:
            _fail(waiting, lambda: failed(cause))
        else:
            _fail(waiting, lambda: NotAppended(message=failure.message))

    def fail(self, cause: BaseException) -> None:
        """A sync has failed: nobody can say what became of what was written. What was not is refused."""
        while self._written:
            _fail(self._written.popleft().waiting, lambda: failed(cause))
        while (pending := self.handover.next()) is not None:
            _fail((pending,), lambda: failed(cause))

    def give_up(self) -> None:
        """The log is closed: whoever waits still has nothing in it."""
        while (pending := self.handover.next()) is not None:
            _fail((pending,), lambda: LogClosed("the log was closed before the record was written"))
        while self._written:
            _fail(self._written.popleft().waiting, lambda: LogClosed("the log was closed before a sync: see flush"))

    @property
    def is_idle(self) -> bool:
        return not self._is_making_room and not self._written and not self._due and self.handover.peek() is None


def failed(cause: BaseException) -> LogFailed:
    return LogFailed(
        f"a sync of the log has failed ({cause}), so nobody knows which of its last records the disk has: close it and "
        "open it again to find out"
    )


def _fail(waiting: Sequence[Pending], error: Callable[[], BaseException]) -> None:
    for pending in waiting:
        pending.fail(error)
