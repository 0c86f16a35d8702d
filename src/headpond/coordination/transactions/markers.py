"""Markers: how the partitions of a decided transaction learn its outcome.

A marker goes to every partition, again and again until each has said that it has it; only then is the transaction
complete. Marking twice does no harm: a partition without an open transaction of that producer stays as it is. So a
coordinator that starts anew sends the markers of everything that it finds decided, whatever was sent before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol

from headpond.model import ErrorCode, TopicPartition
from headpond.model.backoff import Backoff
from headpond.ports import Clock, TimerHandle

_log = logging.getLogger(__name__)

RETRY_FIRST_S = 0.05
RETRY_MAX_S = 5.0
"""Between two attempts at the partitions that did not take the marker; doubled each time."""
COMPLETION_RETRY_S = 1.0
"""All have it, and yet the record that says so could not be written: try that again this often."""


class Marker(NamedTuple):
    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int


class MarkerSender(Protocol):
    def send(
        self,
        marker: Marker,
        partitions: Collection[TopicPartition],
        answer: Callable[[Mapping[TopicPartition, ErrorCode]], None],
    ) -> None:
        """Try once to have ``marker`` written, durably, on these partitions, wherever they are led. ``answer`` is
        called once, now or later, with how it went; a partition that it leaves out is one that is not known of."""


DONE = frozenset(
    {
        ErrorCode.NONE,
        # A later epoch of the producer was there already: what this one had open is over. Kafka gives up on the whole
        # transaction here and answers CONCURRENT_TRANSACTIONS until the coordinator moves.
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,  # nothing transactional can be in there
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
EXPECTED = DONE | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,  # another coordinator, that this one does not know of yet
}


class _Round:
    """One decided transaction, until ``forget``."""

    __slots__ = ("backoff", "marker", "timer", "waiting")

    def __init__(self, marker: Callable[[], Marker], partitions: Collection[TopicPartition]) -> None:
        self.marker = marker
        self.waiting = set(partitions)
        self.backoff = Backoff(RETRY_FIRST_S, RETRY_MAX_S)
        self.timer: TimerHandle | None = None


class MarkerRounds:
    """The markers that one partition's coordinator has under way."""

    def __init__(
        self,
        sender: MarkerSender,
        clock: Clock,
        *,
        exists: Callable[[TopicPartition], bool],
        written: Callable[[str], None],
    ) -> None:
        """``written`` is told that all partitions of a transaction have the marker, until ``forget`` is called. A
        partition that does not exist any more needs none."""
        self._sender = sender
        self._clock = clock
        self._exists = exists
        self._written = written
        self._rounds: dict[str, _Round] = {}

    def __contains__(self, transactional_id: object) -> bool:
        return transactional_id in self._rounds

    def __len__(self) -> int:
        return len(self._rounds)

    def start(
        self, transactional_id: str, marker: Callable[[], Marker], partitions: Collection[TopicPartition]
    ) -> None:
        """``marker`` is asked at each attempt: the coordinator's epoch may have grown."""
        if transactional_id not in self._rounds:
            started = self._rounds[transactional_id] = _Round(marker, partitions)
            self._attempt(transactional_id, started)

    def forget(self, transactional_id: str) -> None:
        ended = self._rounds.pop(transactional_id, None)
        if ended is not None and ended.timer is not None:
            ended.timer.cancel()

    def close(self) -> None:
        for transactional_id in list(self._rounds):
            self.forget(transactional_id)

    def _attempt(self, transactional_id: str, current: _Round) -> None:
        current.timer = None
        current.waiting = {tp for tp in current.waiting if self._exists(tp)}
        if not current.waiting:
            current.timer = self._clock.call_later(COMPLETION_RETRY_S, lambda: self._attempt(transactional_id, current))
            self._written(transactional_id)
            return

        def answer(results: Mapping[TopicPartition, ErrorCode]) -> None:
            if self._rounds.get(transactional_id) is current:
                self._answered(transactional_id, current, results)

        self._sender.send(current.marker(), tuple(sorted(current.waiting)), answer)

    def _answered(self, transactional_id: str, current: _Round, results: Mapping[TopicPartition, ErrorCode]) -> None:
        for tp in sorted(current.waiting):
            code = results.get(tp, ErrorCode.NETWORK_EXCEPTION)
            if code in DONE:
                current.waiting.discard(tp)
            elif code not in EXPECTED:
                _log.error("the marker of %r was refused by %s: %s", transactional_id, tp, code.name)
        if not current.waiting:
            self._attempt(transactional_id, current)
            return
        pause_s = current.backoff.next_s()
        current.timer = self._clock.call_later(pause_s, lambda: self._attempt(transactional_id, current))
