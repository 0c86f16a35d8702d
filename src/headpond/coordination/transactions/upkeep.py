"""What time does to transactions: those that are open for too long are aborted, ids at rest for too long forgotten.

How long a transaction is open is measured by the monotonic clock: a wall clock that jumps aborts none, and keeps none
open. Only what was open before a restart has nothing but the time that its record says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from headpond.config.transactions import TransactionSettings
from headpond.coordination.runtime import Decision
from headpond.coordination.slices import InSlices, Work, at_once, while_wanted
from headpond.coordination.transactions.book import TransactionBook
from headpond.coordination.transactions.state import AT_REST, Transaction, TransactionState
from headpond.ports import Clock, TimerHandle

if TYPE_CHECKING:
    from headpond.coordination.transactions.machine import WriteSoon

_log = logging.getLogger(__name__)

ABORTS_AT_ONCE_MAX = 100
"""Time-outs that one check acts on; each is a write of its own. The others come ``NEXT_PART_S`` later."""
NEXT_PART_S = 0.1
FORGOTTEN_BYTES_MAX = 131_072
"""Of ids in one batch of tombstones; far below what a batch may hold. The others come ``NEXT_PART_S`` later."""
SLICE_IDS = 5_000
"""Looked at, at a stretch: some milliseconds."""


class _Open(NamedTuple):
    started_ms: int
    """What the record says; another one is another transaction."""
    since_s: float


class Upkeep:
    def __init__(
        self,
        book: TransactionBook,
        settings: Callable[[], TransactionSettings],
        clock: Clock,
        write_soon: WriteSoon,
        abort: Callable[[Transaction], Decision[None]],
        in_slices: InSlices = at_once,
    ) -> None:
        """``abort`` fences the producer of an open transaction and decides to abort it. ``in_slices``: for what takes
        long."""
        self._book = book
        self._settings = settings
        self._clock = clock
        self._write_soon = write_soon
        self._abort = abort
        self._in_slices = in_slices
        self._timers: dict[Callable[[], None], TimerHandle] = {}
        self._open: dict[str, _Open] = {}
        self._left_to_forget: Sequence[str] = ()
        self._is_closed = False

    def start(self) -> None:
        self._next(self._check_late, self._settings().abort_check_interval_ms / 1_000)
        self._next(self._check_expired, self._settings().expiry_check_interval_ms / 1_000)

    def close(self) -> None:
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()

    def _next(self, check: Callable[[], None], delay_s: float) -> None:
        running = self._timers.get(check)
        if running is not None:
            running.cancel()
        self._timers[check] = self._clock.call_later(delay_s, check)

    # --- open for too long

    def began(self, each: Transaction) -> None:
        """It is open from now on."""
        self._open[each.transactional_id] = _Open(each.started_ms, self._clock.monotonic())

    def _check_late(self) -> None:
        work = while_wanted(self._late(), lambda: not self._is_closed)
        self._in_slices("look for late transactions", work, self._abort_soon)

    def _late(self) -> Work[list[str]]:
        """No more of them than one check acts on, and one."""
        late = []
        for number, each in enumerate(list(self._book.unfinished()), start=1):
            if self._is_late(each):
                late.append(each.transactional_id)
                if len(late) > ABORTS_AT_ONCE_MAX:
                    break
            if number % SLICE_IDS == 0:
                yield None
        for number, transactional_id in enumerate(list(self._open), start=1):
            if transactional_id not in self._book.unfinished_ids():
                del self._open[transactional_id]
            if number % SLICE_IDS == 0:
                yield None
        return late

    def _abort_soon(self, late: list[str] | None) -> None:
        if late is None:
            return
        for transactional_id in late[:ABORTS_AT_ONCE_MAX]:
            self._time_out_soon(transactional_id)
        interval_s = self._settings().abort_check_interval_ms / 1_000
        self._next(self._check_late, interval_s if len(late) <= ABORTS_AT_ONCE_MAX else min(NEXT_PART_S, interval_s))

    def _time_out_soon(self, transactional_id: str) -> None:
        self._write_soon(f"abort {transactional_id}", lambda machine: machine.upkeep.time_out(transactional_id))

    def time_out(self, transactional_id: str) -> Decision[None]:
        was = self._book.current(transactional_id)
        if was is None or not self._is_late(was):
            return Decision(None)  # it was ended meanwhile
        _log.info("the transaction of %r took more than %d ms and is aborted", transactional_id, was.timeout_ms)
        return self._abort(was)

    def _is_late(self, each: Transaction) -> bool:
        return (
            each.state is TransactionState.ONGOING
            and self._open_ms(each) > each.timeout_ms
            and self._book.is_written(each.transactional_id)
        )

    def _open_ms(self, each: Transaction) -> float:
        now_s = self._clock.monotonic()
        known = self._open.get(each.transactional_id)
        if known is None or known.started_ms != each.started_ms:  # it was open when this coordinator began
            age_ms = max(0, self._clock.now_ms() - each.started_ms)
            known = self._open[each.transactional_id] = _Open(each.started_ms, now_s - age_ms / 1_000)
        return (now_s - known.since_s) * 1_000

    # --- at rest for too long

    def _check_expired(self) -> None:
        self._next(self._check_expired, self._settings().expiry_check_interval_ms / 1_000)
        work = while_wanted(self._expired(), lambda: not self._is_closed)
        self._in_slices("look for expired transactional ids", work, self._forget_soon)

    def _expired(self) -> Work[list[str]]:
        found = []
        for number, each in enumerate(list(self._book.all_current()), start=1):
            if self._is_expired(each):
                found.append(each.transactional_id)
            if number % SLICE_IDS == 0:
                yield None
        return found

    def _is_expired(self, each: Transaction | None) -> bool:
        return (
            each is not None
            and each.state in AT_REST
            and each.updated_ms <= self._clock.now_ms() - self._settings().id_expiration_ms
            and self._book.is_written(each.transactional_id)
        )

    def _forget_soon(self, expired: Sequence[str] | None) -> None:
        if expired and not self._is_closed:
            self._write_soon("forget transactional ids", lambda machine: machine.upkeep.forget(expired))

    def _forget_rest(self) -> None:
        self._forget_soon(self._left_to_forget)

    def forget(self, expired: Sequence[str]) -> Decision[None]:
        """As many as fit into one batch, unless somebody has come back meanwhile; the others follow."""
        gone: list[str] = []
        size_bytes = 0
        for number, transactional_id in enumerate(expired):
            if self._is_expired(self._book.current(transactional_id)):
                size_bytes += len(transactional_id.encode("utf-8", "surrogatepass"))
                if gone and size_bytes > FORGOTTEN_BYTES_MAX:
                    self._left_to_forget = expired[number:]
                    self._next(self._forget_rest, NEXT_PART_S)
                    break
                gone.append(transactional_id)
                size_bytes += 32  # what a record has around its key
        return self._book.forget(gone) if gone else Decision(None)
