"""Produces that are appended and wait to become durable and visible (acks=all).

Parking costs no timer and no future: the waiter stands in its partitions' queues, and a sweep that runs only while
something is parked looks for the ones whose time is over. Time out is not failure: the batch stays in the log and may
become visible later; the client is told REQUEST_TIMED_OUT and retries, idempotently if it can.
"""

from __future__ import annotations

from collections.abc import Callable

from headpond.broker.handlers.produce.wire import ProducePrefix, Result, one_topic_response
from headpond.broker.net.connection import Connection
from headpond.broker.net.slots import Slot
from headpond.broker.replicas.replicas import Replica
from headpond.model import ErrorCode
from headpond.ports import Clock

SWEEP_SECONDS = 0.1

Wait = tuple[Replica, int, int, int]
"""(replica, end offset to become visible, topic number, number of the partition in the topic's results)"""


def _nobody_counts(code: int) -> None:
    pass


class ParkedProduces:
    def __init__(self, clock: Clock, on_failed: Callable[[int], None] = _nobody_counts) -> None:
        self.on_failed = on_failed
        self._clock = clock
        # Parking must be cheap, and most are answered before the next sweep: a deadline is worked out only then.
        self._fresh: dict[ParkedOne | ParkedProduce, int] = {}
        self._deadlines: dict[ParkedOne | ParkedProduce, float] = {}
        self._sweeping = False

    def __len__(self) -> int:
        return len(self._fresh) + len(self._deadlines)

    def park(self, parked: ParkedOne | ParkedProduce, timeout_ms: int) -> None:
        self._fresh[parked] = timeout_ms
        if not self._sweeping:
            self._sweeping = True
            self._clock.call_later(SWEEP_SECONDS, self._sweep)

    def forget(self, parked: ParkedOne | ParkedProduce) -> None:
        if self._fresh.pop(parked, None) is None:
            self._deadlines.pop(parked, None)

    def _sweep(self) -> None:
        now = self._clock.monotonic()
        for parked in [parked for parked, deadline in self._deadlines.items() if deadline <= now]:
            parked.give_up()
        fresh, self._fresh = self._fresh, {}
        for parked, timeout_ms in fresh.items():
            self._deadlines[parked] = now + timeout_ms / 1000
        self._sweeping = bool(self._deadlines)
        if self._sweeping:
            self._clock.call_later(SWEEP_SECONDS, self._sweep)


class ParkedOne(Slot):
    """A request for one partition, the common case: its answer is ready and only has to be let go."""

    __slots__ = ("_answer", "_correlation_id", "_index", "_parked", "_prefix")

    def __init__(
        self,
        connection: Connection,
        answer: bytes,
        prefix: ProducePrefix,
        correlation_id: int,
        index: int,
        parked: ParkedProduces,
    ) -> None:
        self.connection = connection
        self.parts = self.on_abandoned = None
        self._answer: bytes | None = answer  # None: it has left, or nobody wants it any more
        self._prefix = prefix
        self._correlation_id = correlation_id
        self._index = index
        self._parked = parked

    def reached(self, index: int) -> None:
        answer = self._answer
        if answer is not None:
            self._answer = None
            self._parked.forget(self)
            self.connection.answer_parked(self, answer)

    def lost(self, index: int) -> None:
        self._fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def give_up(self) -> None:
        self._fail(ErrorCode.REQUEST_TIMED_OUT)

    def abandon(self) -> None:
        self._answer = None
        self._parked.forget(self)

    def _fail(self, code: ErrorCode) -> None:
        if self._answer is not None:
            self._parked.on_failed(code)
            result = Result(self._index, code)
            self._answer = one_topic_response(self._prefix.version, self._correlation_id, self._prefix, [result])
            self.reached(0)


class ParkedProduce:
    """One request; ``results`` holds what will be answered when every partition has got there."""

    __slots__ = ("_parked", "_remaining", "_respond", "_results", "_slot", "_waits")

    def __init__(
        self,
        slot: Slot,
        respond: Callable[[list[list[Result]]], bytes],
        results: list[list[Result]],
        waits: list[Wait],
        parked: ParkedProduces,
    ) -> None:
        self._slot = slot
        self._respond = respond
        self._results = results
        self._waits: list[Wait | None] = []
        self._remaining = 0
        self._parked = parked
        slot.on_abandoned = self._abandoned
        self._wait_for(waits)

    def reached(self, index: int) -> None:
        """That partition's high watermark has passed the batch."""
        if self._waits[index] is not None:
            self._waits[index] = None
            self._one_less()

    def lost(self, index: int) -> None:
        """That partition is gone, or led by somebody else."""
        self._fail(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def give_up(self) -> None:
        for index in range(len(self._waits)):
            self._fail(index, ErrorCode.REQUEST_TIMED_OUT)

    def _abandoned(self) -> None:
        # The places in the partitions' queues stay until the high watermark passes them: soon, and harmlessly.
        self._parked.forget(self)

    def _fail(self, index: int, code: ErrorCode) -> None:
        wait = self._waits[index]
        if wait is None:
            return
        self._waits[index] = None
        self._parked.on_failed(code)
        _, _, topic_number, row_number = wait
        row = self._results[topic_number]
        row[row_number] = Result(row[row_number].index, code)
        self._one_less()

    def _wait_for(self, waits: list[Wait]) -> None:
        known = len(self._waits)
        self._waits += waits
        self._remaining += len(waits)
        for number, (replica, end_offset, _, _) in enumerate(waits, known):
            replica.produce_waiters.append((end_offset, self, number))

    def _one_less(self) -> None:
        self._remaining -= 1
        if self._remaining == 0:
            self._parked.forget(self)
            self._finish()

    def _finish(self) -> None:
        self._slot.complete((self._respond(self._results),))
