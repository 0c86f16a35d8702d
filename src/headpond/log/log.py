"""``Log``: what the library's users hold. Every call may come from any thread; none needs, or disturbs, an event loop.

Appends are handed to the log's own thread, which writes and syncs for everybody at once (``appends``); reads stay on
the caller's (``reads``). Memory is bounded: a thread waits for its append, and ``append_many`` has so many batches in
flight.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from headpond.log import compacting
from headpond.log.appends import Chain, Pending, batch_of, failed
from headpond.log.batch import RawBatch
from headpond.log.compacting import Compacted
from headpond.log.engine import Engine, SegmentInfo
from headpond.log.errors import LogClosed, LogError, OffsetOutOfRange
from headpond.log.given import Appendable, Data, Headers, NewRecord, record_of, whole_number
from headpond.log.reads import Loop, Reads
from headpond.protocol.records.record import Record
from headpond.runtime import lifetimes
from headpond.runtime.handover import Waiters
from headpond.runtime.loop_thread import LoopThread

T = TypeVar("T")

IN_FLIGHT_MAX = 128
"""Batches of one ``append_many`` that are not durable yet: 4 MB, enough for a disk to have one sync's worth while the
next is made."""
TOMBSTONE_RETENTION_MS = 86_400_000


class Log:
    """An open log; ``headpond.log.open`` makes it. A context manager: leaving it closes the log."""

    def __init__(self, engine: Engine, thread: LoopThread) -> None:
        self._engine = engine
        self._thread = thread
        self._unusable: str | None = None  # why
        self._is_ended = False
        self._now_ms = engine.now_ms
        self._waiters = Waiters()
        engine.visible.on_change = self._waiters.wake
        self._reads = Reads(
            engine.log, engine.visible, Loop(self._call, engine.read_file, engine.rebuild), self._check_open
        )
        self._forget = lifetimes.keep(self, lambda: _let_go(engine, thread))

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._engine.tp.topic

    @property
    def path(self) -> str:
        """Its data folder. The segments are in ``<path>/<name>-0``."""
        return self._engine.path

    @property
    def start_offset(self) -> int:
        """Of the oldest record that is not deleted."""
        return self._reads.view().start_offset

    @property
    def end_offset(self) -> int:
        """What the next record will get, if all that is written is visible."""
        return self._reads.view().end_offset

    @property
    def size_bytes(self) -> int:
        self._check_open()
        return self._engine.log.size_bytes

    @property
    def is_closed(self) -> bool:
        return self._unusable is not None

    def segments(self) -> list[SegmentInfo]:
        """The files, the oldest first, with their index entries as they are in memory."""
        return self._call(self._engine.segments())

    def __repr__(self) -> str:
        if self._unusable is not None:
            return f"Log({self.path!r}, closed)"
        view = self._engine.visible.view
        return f"Log({self.path!r}, {view.start_offset}..{view.end_offset})"

    # --- append -------------------------------------------------------------------------------------------------------

    def append(self, value: Data, *, key: Data = None, headers: Headers = (), timestamp: int | None = None) -> int:
        """Write one record; returns its offset, when it is durable (unless ``flush`` said otherwise).

        Appends of several threads share batches and syncs. Raises ``NotAppended`` (a full disk: nothing was written),
        ``LogFailed`` (outcome unknown), ``LogClosed``, ``RecordTooLarge``, ``TypeError`` and ``ValueError``. After a
        ``KeyboardInterrupt`` the outcome is unknown: the record may be in the log, or may still get there.
        """
        given = (
            value if key is None and not headers and timestamp is None else NewRecord(value, key, headers, timestamp)
        )
        pending = Pending(record_of(given, self._now_ms()))
        self._hand_over(pending)
        return pending.wait()

    def append_many(self, records: Iterable[Appendable]) -> list[int]:
        """Write records (values, or ``NewRecord``s) in their order; returns their offsets, when all are durable.

        They go in batches: records of other threads may come in between, and after an error or an interruption some
        of the first ones are in the log, and none behind one that is not. An iterable is consumed as its records are
        written."""
        if isinstance(records, str | bytes | bytearray | memoryview | NewRecord) or not isinstance(records, Iterable):
            raise TypeError(f"append_many() takes a list of records, not a {type(records).__name__}")
        self._check_working()
        offsets: list[int] = []
        in_flight: deque[tuple[Pending, int]] = deque()
        chain = Chain()
        try:
            for batch in _batches(records, self._now_ms, self._engine.batch_bytes_max):
                pending = Pending(None, batch_of(batch), chain)
                self._hand_over(pending)
                in_flight.append((pending, len(batch)))
                if len(in_flight) >= IN_FLIGHT_MAX:
                    _collect(in_flight, IN_FLIGHT_MAX // 2, offsets)
            _collect(in_flight, 0, offsets)
        except Exception:  # of the iterable or the disk, or a bad record: what came before it has its fate first
            while in_flight:
                with contextlib.suppress(LogError):
                    _collect(in_flight, 0, offsets)
            raise
        return offsets

    def flush(self) -> None:
        """Returns when all that is written is durable: for logs that were opened with another ``flush`` than "ack"."""
        self._call(self._engine.flush())

    def _hand_over(self, pending: Pending) -> None:
        if self._unusable is not None or self._engine.failure is not None or self._thread.is_here:
            self._check_working()
        if not self._engine.handover.put(pending):
            raise self._closed()

    # --- read ---------------------------------------------------------------------------------------------------------

    def read(self, from_offset: int | None = None, *, from_timestamp: int | None = None) -> Iterator[Record]:
        """The records from an offset on (or from the first that is as late as ``from_timestamp``; or all), up to the
        end that the log has at this call. Each is decoded when it is asked for. Under flush="ack" only what is durable
        can be read.

        Raises ``OffsetOutOfRange`` at once; while reading also ``CorruptRecord``, ``ReadFailed``, ``LogClosed``."""
        start_offset, end_offset = self._bounds(from_offset, from_timestamp)
        return self._records(start_offset, end_offset)

    def read_batches(self, from_offset: int | None = None, *, from_timestamp: int | None = None) -> Iterator[RawBatch]:
        """The same as whole batches: checksums compared, records not decoded. The first may begin before the offset."""
        return self._reads.batches(*self._bounds(from_offset, from_timestamp))

    def follow(self, from_offset: int | None = None, *, timeout_s: float | None = None) -> Iterator[Record]:
        """The records from an offset on (None: those that come after this call), and then each that is appended, as
        soon as it is visible. Ends when the log is closed, or when none came for ``timeout_s``."""
        if timeout_s is not None and (isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float)):
            raise TypeError(f"timeout_s is {timeout_s!r}: it should be seconds, or None")
        if timeout_s is not None and not 0 <= timeout_s < 1e9:
            raise ValueError(f"timeout_s is {timeout_s}: it should be 0 or more seconds")
        offset = self.end_offset if from_offset is None else self._bounds(from_offset, None)[0]
        return self._follow(offset, timeout_s)

    def offset_at(self, timestamp: int) -> int:
        """Of the first record whose timestamp is this or later; ``end_offset`` if there is none."""
        return self._call(self._engine.first_offset_at(whole_number(timestamp, "the timestamp")))

    def _bounds(self, from_offset: int | None, from_timestamp: int | None) -> tuple[int, int]:
        view = self._reads.view()
        if from_timestamp is not None:
            if from_offset is not None:
                raise ValueError("from_offset or from_timestamp, not both")
            return self.offset_at(from_timestamp), view.end_offset
        if from_offset is None:
            return view.start_offset, view.end_offset
        if not view.start_offset <= whole_number(from_offset, "the offset") <= view.end_offset:
            raise OffsetOutOfRange(from_offset, view.start_offset, view.end_offset)
        return from_offset, view.end_offset

    def _records(self, from_offset: int, end_offset: int) -> Iterator[Record]:
        for batch in self._reads.batches(from_offset, end_offset):
            yield from batch.records(from_offset)

    def _follow(self, offset: int, timeout_s: float | None) -> Iterator[Record]:
        while True:
            try:
                end_offset = self._reads.view().end_offset
                for record in self._records(offset, end_offset):
                    yield record
                    offset = record.offset + 1
            except LogClosed:
                return
            offset = max(offset, end_offset)
            if not self._waiters.wait(partial(self._is_beyond, offset), timeout_s):
                return

    def _is_beyond(self, offset: int) -> bool:
        return self._unusable is not None or self._engine.visible.view.end_offset > offset

    # --- delete -------------------------------------------------------------------------------------------------------

    def delete_before(self, offset: int) -> int:
        """The records below ``offset`` can't be read any more, durably; segments that lie wholly below are removed.
        Returns where the log begins now, which is never lower than before."""
        return self._call(self._engine.delete_before(whole_number(offset, "the offset")))

    def apply_retention(self) -> int:
        """Remove the segments that ``retention_ms`` and ``retention_bytes`` give up now; returns how many. An open log
        does that by itself every five minutes."""
        return self._call(self._engine.apply_retention())

    def compact(self, *, tombstone_retention_ms: int = TOMBSTONE_RETENTION_MS) -> Compacted:
        """Keep the latest record of each key, of all that is in the log at this call; returns when it is done, and what
        it did. Offsets do not change. A record without a value deletes its key: it goes itself in a compaction that
        takes place so much later than the one that first met it.

        Runs in a process of its own, and appends and reads go on. Raises ``KeyMissing`` (nothing was changed),
        ``CompactionFailed``, ``CorruptRecord``."""
        if whole_number(tombstone_retention_ms, "tombstone_retention_ms") < 0:
            raise ValueError("tombstone_retention_ms should be 0 or more")
        engine = self._engine
        dirt = self._call(compacting.begin(engine, tombstone_retention_ms))
        try:
            if dirt is None:
                return Compacted(0, 0, engine.log.size_bytes, engine.log.size_bytes, self.end_offset)
            compacting.check_keys(self._reads.batches(self.start_offset, dirt.segments[-1].end_offset))
            return self._call(compacting.clean(engine, dirt, tombstone_retention_ms))
        finally:
            engine.is_compacting = False

    # --- life ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Everything that was appended is durable, and the folder is free for the next open. May be called twice; after
        a ``KeyboardInterrupt`` it goes on by itself, and the next call waits for it."""
        if self._is_ended:
            return
        if self._thread.is_here:
            raise RuntimeError("a log can't be closed on its own thread")
        self._unusable = self._unusable or "the log is closed"
        try:
            self._thread.call(self._engine.close())
        except Exception:
            self._end()
            raise
        self._end()

    def _end(self) -> None:
        self._is_ended = True
        self._waiters.wake()
        self._forget()
        self._thread.close()
        self._engine.visible.end()

    def disown(self) -> None:
        """This is a forked child: the thread, and the lock on the folder, are the parent's."""
        self._unusable = "the log was opened by the process that this one was forked from: open one here"
        self._is_ended = True

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            self._check_open()
            if self._thread.is_here:
                raise RuntimeError("a log can't be used on its own thread")
        except BaseException:
            work.close()
            raise
        try:
            return self._thread.call(work)
        except RuntimeError:
            self._check_open()  # it was closed meanwhile
            raise

    def _check_working(self) -> None:
        self._check_open()
        if self._thread.is_here:
            raise RuntimeError("a log can't be used on its own thread")
        if self._engine.failure is not None:
            raise failed(self._engine.failure)

    def _check_open(self) -> None:
        if self._unusable is not None:
            raise self._closed()

    def _closed(self) -> LogClosed:
        return LogClosed(self._unusable or "the log is closed")


def _batches(given: Iterable[Appendable], now_ms: Callable[[], int], batch_bytes_max: int) -> Iterator[list[Record]]:
    records: list[Record] = []
    size_bytes = 0
    for one in given:
        sized = record_of(one, now_ms())
        if records and size_bytes + sized.size_bytes > batch_bytes_max:
            yield records
            records, size_bytes = [], 0
        records.append(sized.record)
        size_bytes += sized.size_bytes
    if records:
        yield records


def _collect(in_flight: deque[tuple[Pending, int]], left: int, offsets: list[int]) -> None:
    """Wait for the oldest until so many are left."""
    while len(in_flight) > left:
        pending, count = in_flight.popleft()
        first = pending.wait()
        offsets.extend(range(first, first + count))


def _let_go(engine: Engine, thread: LoopThread) -> None:
    """Nobody refers to the log any more: it is closed in the background. On any thread, in the middle of anything."""
    warnings.warn(f"the log {engine.path} was not closed", ResourceWarning, stacklevel=2)

    async def close() -> None:
        try:
            await engine.close()
        finally:
            thread.end_soon()

    with contextlib.suppress(RuntimeError):  # the loop is closed
        thread.begin(close())
