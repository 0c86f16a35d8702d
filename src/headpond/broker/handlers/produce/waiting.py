"""Answers of produces that are appended and wait until they are committed (acks=all).

The wait itself is the partition's (``Partition.when_committed``). Time out is not failure: the batch stays in the log
and may become visible later; the client is told REQUEST_TIMED_OUT and retries, idempotently if it can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headpond.broker.handlers.produce.wire import ProducePrefix, Result, one_topic_response
from headpond.broker.net.connection import Connection
from headpond.broker.net.slots import Slot
from headpond.model import BrokerError
from headpond.replication.deadlines import Deadlines
from headpond.replication.partition import Partition
from headpond.telemetry.requests import RequestMeter


class Wait(NamedTuple):
    """Which batch has to be committed, and where its result stands."""

    partition: Partition
    end_offset: int
    topic_number: int
    row_number: int


class Waiting:
    """Those that wait now, and what ends with them."""

    __slots__ = ("count", "deadlines", "meter")

    def __init__(self, deadlines: Deadlines, meter: RequestMeter) -> None:
        self.count = 0
        self.deadlines = deadlines
        self.meter = meter


class WaitingAnswer(Slot):
    """A request for one partition, the common case: its answer is ready and only has to be let go."""

    __slots__ = ("_answer", "_correlation_id", "_index", "_prefix", "_waiting")

    def __init__(
        self,
        connection: Connection,
        answer: bytes,
        prefix: ProducePrefix,
        correlation_id: int,
        index: int,
        waiting: Waiting,
    ) -> None:
        self.connection = connection
        self.parts = self.on_abandoned = None
        self._answer: bytes | None = answer  # None: it has left, or nobody wants it any more
        self._prefix = prefix
        self._correlation_id = correlation_id
        self._index = index
        self._waiting = waiting
        waiting.count += 1

    def reached(self) -> None:
        answer = self._answer
        if answer is not None:
            self._answer = None
            self._waiting.count -= 1
            self.connection.answer_parked(self, answer)

    def failed(self, error: BrokerError) -> None:
        if self._answer is not None:
            self._waiting.meter.failed(error.code)
            result = Result(self._index, error.code)
            self._answer = one_topic_response(self._prefix.version, self._correlation_id, self._prefix, [result])
            self.reached()

    def abandon(self) -> None:
        if self._answer is not None:
            self._answer = None
            self._waiting.count -= 1
            self._waiting.deadlines.end(self)


class WaitingAnswers:
    """One request for several partitions; ``results`` holds what will be answered when all of them are settled."""

    __slots__ = ("_is_counted", "_parts", "_remaining", "_respond", "_results", "_slot", "_waiting")

    def __init__(
        self,
        slot: Slot,
        respond: Callable[[list[list[Result]]], bytes],
        results: list[list[Result]],
        waiting: Waiting,
    ) -> None:
        self._slot = slot
        self._respond = respond
        self._results = results
        self._parts: list[_Part] = []
        self._remaining = 1  # until it has all
        self._waiting = waiting
        self._is_counted = True
        waiting.count += 1
        slot.on_abandoned = self._forget

    def wait_for(self, waits: list[Wait]) -> None:
        self._remaining += len(waits)
        for partition, end_offset, topic_number, row_number in waits:
            part = _Part(self, topic_number, row_number)
            self._parts.append(part)
            partition.when_committed(end_offset, part)

    def has_all(self, timeout_ms: int) -> None:
        if self._is_counted:
            self._waiting.deadlines.begin(self, timeout_ms)
        self.one_less()

    def reached(self) -> None:
        """Each of its partitions is told, and tells it."""

    def failed(self, error: BrokerError) -> None:
        """Time is up."""
        for part in self._parts:
            part.failed(error)

    def part_failed(self, topic_number: int, row_number: int, error: BrokerError) -> None:
        self._waiting.meter.failed(error.code)
        row = self._results[topic_number]
        row[row_number] = Result(row[row_number].index, error.code)
        self.one_less()

    def one_less(self) -> None:
        self._remaining -= 1
        if self._remaining == 0:
            self._forget()
            self._finish()

    def _forget(self) -> None:
        """Also when the client has left: places in the partitions' queues stay until the high watermark passes them,
        soon and harmlessly."""
        if self._is_counted:
            self._is_counted = False
            self._waiting.count -= 1
            self._waiting.deadlines.end(self)

    def _finish(self) -> None:
        self._slot.complete((self._respond(self._results),))


class _Part:
    """Waits at one of the partitions."""

    __slots__ = ("_answers", "_is_over", "_row_number", "_topic_number")

    def __init__(self, answers: WaitingAnswers, topic_number: int, row_number: int) -> None:
        self._answers = answers
        self._topic_number = topic_number
        self._row_number = row_number
        self._is_over = False

    def reached(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._answers.one_less()

    def failed(self, error: BrokerError) -> None:
        if not self._is_over:
            self._is_over = True
            self._answers.part_failed(self._topic_number, self._row_number, error)
