"""From a decision to its end: markers on every partition, then the record that says so.

A decision (a Prepare* record) that was appended and not seen committed is not acted upon: it might be lost with this
leader, and the next one decide otherwise. It is written again until it is committed, or this coordinator is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headpond.coordination.runtime import Decision
from headpond.coordination.transactions import transitions
from headpond.coordination.transactions.book import TransactionBook
from headpond.coordination.transactions.markers import Marker, MarkerRounds, MarkerSender
from headpond.coordination.transactions.state import PREPARED
from headpond.model import TopicPartition
from headpond.ports import Clock, TimerHandle

if TYPE_CHECKING:
    from headpond.coordination.transactions.machine import WriteSoon

UNSURE_RETRY_S = 1.0


class Completion:
    """What it writes later goes through the machine that leads then: this one may be closed by that time."""

    def __init__(
        self,
        book: TransactionBook,
        clock: Clock,
        write_soon: WriteSoon,
        *,
        markers: MarkerSender,
        coordinator_epoch: Callable[[], int],
        exists: Callable[[TopicPartition], bool],
    ) -> None:
        self._book = book
        self._clock = clock
        self._write_soon = write_soon
        self._coordinator_epoch = coordinator_epoch
        self._rounds = MarkerRounds(markers, clock, exists=exists, written=self._written)
        self._unsure: dict[str, None] = {}
        self._timer: TimerHandle | None = None
        book.on_decided = self._decided
        book.on_unsure = self._failed

    def resume(self) -> None:
        """After a restart: whatever was decided gets its markers, again perhaps."""
        for each in list(self._book.unfinished()):
            if each.state in PREPARED:
                self._decided(each.transactional_id)

    def close(self) -> None:
        self._rounds.close()
        if self._timer is not None:
            self._timer.cancel()

    def _decided(self, transactional_id: str) -> None:
        decided = self._book.current(transactional_id)
        assert decided is not None
        self._unsure.pop(transactional_id, None)

        def marker() -> Marker:
            return Marker(
                decided.producer_id,
                decided.producer_epoch,
                decided.is_commit,
                self._coordinator_epoch(),
                decided.client_version,
            )

        self._rounds.start(transactional_id, marker, decided.partitions)

    # --- the end

    def _written(self, transactional_id: str) -> None:
        self._write_soon(f"complete {transactional_id}", lambda machine: machine.completion.complete(transactional_id))

    def complete(self, transactional_id: str) -> Decision[None]:
        was = self._book.current(transactional_id)
        if transactional_id not in self._rounds or not self._book.is_written(transactional_id):
            return Decision(None)
        if was is None or was.state not in PREPARED:
            self._rounds.forget(transactional_id)
            return Decision(None)
        decision = self._book.step(transitions.completed(was, self._clock.now_ms()), None)
        remember = decision.on_committed

        def committed() -> None:
            self._rounds.forget(transactional_id)
            if remember is not None:
                remember()

        decision.on_committed = committed
        return decision

    # --- doubt

    def _failed(self, transactional_id: str) -> None:
        found = self._book.current(transactional_id)
        if found is not None and found.state in PREPARED and transactional_id not in self._rounds:
            self._unsure[transactional_id] = None
            if self._timer is None:
                self._timer = self._clock.call_later(UNSURE_RETRY_S, self._write_unsure)

    def _write_unsure(self) -> None:
        self._timer = self._clock.call_later(UNSURE_RETRY_S, self._write_unsure) if self._unsure else None
        for transactional_id in list(self._unsure):
            self._decide_soon(transactional_id)

    def _decide_soon(self, transactional_id: str) -> None:
        self._write_soon(f"decide {transactional_id}", lambda machine: machine.completion.decide(transactional_id))

    def decide(self, transactional_id: str) -> Decision[None]:
        """The same decision once more."""
        was = self._book.current(transactional_id)
        if transactional_id not in self._unsure or not self._book.is_written(transactional_id):
            return Decision(None)
        if was is None or was.state not in PREPARED:
            del self._unsure[transactional_id]
            return Decision(None)
        return self._book.step(was, None)
