"""A transaction coordinator without a broker: a log in memory, a clock that the test moves, partitions that take
markers when the test says so, and producers that talk in short sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from headpond.config.transactions import TransactionSettings
from headpond.coordination.home import Producer
from headpond.coordination.runtime import Decision
from headpond.coordination.transactions.machine import Facts, TransactionMachine
from headpond.coordination.transactions.markers import Marker
from headpond.coordination.transactions.records import transaction_codec
from headpond.model import BrokerError, ErrorCode, TopicPartition
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from simulation.harness.clock import ManualClock

A = TypeVar("A")
ID = "orders"
TIMEOUT_MS = 60_000
P0, P1, P2 = (TopicPartition("payments", number) for number in range(3))


class Sent(NamedTuple):
    marker: Marker
    partitions: tuple[TopicPartition, ...]
    answer: Callable[[Mapping[TopicPartition, ErrorCode]], None]

    def succeed(self) -> None:
        self.answer(dict.fromkeys(self.partitions, ErrorCode.NONE))

    def fail(self, code: ErrorCode) -> None:
        self.answer(dict.fromkeys(self.partitions, code))


class World:
    """``holds_markers``: they wait in ``sent`` for the test. ``holds_commits``: records wait for ``commit``."""

    def __init__(self, *, transaction_version: int = 2, settings: TransactionSettings | None = None) -> None:
        self.transaction_version = transaction_version
        self.settings = settings or TransactionSettings()
        self.clock = ManualClock()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.sent: list[Sent] = []
        self.markers: list[tuple[TopicPartition, Marker]] = []  # that partitions have, in order
        self.deleted: set[TopicPartition] = set()
        self.holds_markers = self.holds_commits = False
        self.append_error: ErrorCode | None = None
        self.has_producer_ids = True
        self.leader_epoch = 5
        self._next_producer_id = 1_000
        self._uncommitted: list[Decision[Any]] = []
        self._codec = transaction_codec(lambda: self.transaction_version)
        self.machine = self._make()
        self.machine.loaded()

    def _make(self) -> TransactionMachine:
        return TransactionMachine(
            settings=lambda: self.settings,
            clock=self.clock,
            write_soon=lambda what, decide: self._write_soon(decide),
            producer_ids=self,
            markers=self,
            facts=Facts(
                coordinator_epoch=lambda: self.leader_epoch,
                transaction_version=lambda: self.transaction_version,
                exists=lambda tp: tp not in self.deleted,
            ),
        )

    # --- what the machine needs

    def take_nowait(self) -> int | None:
        if not self.has_producer_ids:
            return None
        self._next_producer_id += 1
        return self._next_producer_id

    def send(
        self,
        marker: Marker,
        partitions: Collection[TopicPartition],
        answer: Callable[[Mapping[TopicPartition, ErrorCode]], None],
    ) -> None:
        def take(results: Mapping[TopicPartition, ErrorCode]) -> None:
            self.markers += [(tp, marker) for tp, code in sorted(results.items()) if code is ErrorCode.NONE]
            answer(results)

        sent = Sent(marker, tuple(partitions), take)
        if self.holds_markers:
            self.sent.append(sent)
        else:
            sent.succeed()

    def write(self, decide: Callable[[TransactionMachine], Decision[A]]) -> A:
        """As the runtime does it; with ``holds_commits`` the answer is that of a client that did not wait."""
        decision = decide(self.machine)
        if decision.records:
            if self.append_error is not None:
                if decision.on_failed is not None:
                    decision.on_failed(self.append_error)
                raise BrokerError(self.append_error)
            for record in decision.records:
                data = self._codec.encode(record)
                self.log.append(data)
                read_back = self._codec.decode(*data)
                assert read_back == record
                self.machine.replay(read_back, None)
            if self.holds_commits:
                self._uncommitted.append(decision)
                return decision.answer
        if decision.on_committed is not None:
            decision.on_committed()
        return decision.answer

    def _write_soon(self, decide: Callable[[TransactionMachine], Decision[None]]) -> None:
        try:
            self.write(decide)
        except BrokerError:
            pass  # the runtime logs it

    # --- what happens to it

    def commit(self) -> None:
        self.holds_commits = False
        for decision in self._uncommitted:
            if decision.on_committed is not None:
                decision.on_committed()
        self._uncommitted.clear()

    def fail_commits(self, code: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """They stay in the log, and nobody knows whether they count."""
        for decision in self._uncommitted:
            if decision.on_failed is not None:
                decision.on_failed(code)
        self._uncommitted.clear()

    def restart(self) -> None:
        self.machine.close()
        self.sent.clear()
        self._uncommitted.clear()
        self.holds_commits = False
        self.leader_epoch += 1
        self.machine = self._make()
        for data in self.log:
            record = self._codec.decode(*data)
            assert record is not None
            self.machine.replay(record, None)
        self.machine.loaded()

    def release_markers(self) -> None:
        self.holds_markers = False
        while self.sent:
            self.sent.pop(0).succeed()

    # --- what producers say. An error comes back as its code.

    def init(
        self, name: str = ID, *, has: Producer | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> Producer | ErrorCode:
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=timeout_ms,
            producer_id=has.producer_id if has is not None else -1,
            producer_epoch=has.epoch if has is not None else -1,
        )
        try:
            response = self.write(lambda machine: machine.init_producer_id(request))
        except BrokerError as refused:
            return refused.code
        if response.error_code:
            assert (response.producer_id, response.producer_epoch) == (-1, -1)
            return ErrorCode(response.error_code)
        return Producer(response.producer_id, response.producer_epoch)

    def started(self, name: str = ID, *, timeout_ms: int = TIMEOUT_MS) -> Producer:
        producer = self.init(name, timeout_ms=timeout_ms)
        assert isinstance(producer, Producer), producer
        return producer

    def add(
        self, producer: Producer, *partitions: TopicPartition, name: str = ID, client_version: int = 2
    ) -> ErrorCode:
        try:
            self.write(
                lambda machine: machine.add_partitions(
                    name, producer, partitions or (P0,), client_version=client_version
                )
            )
        except BrokerError as refused:
            return refused.code
        return ErrorCode.NONE

    def end(self, producer: Producer, *, commit: bool, name: str = ID, client_version: int = 2) -> Producer | ErrorCode:
        """What the producer goes on with; with version 1, (-1, -1)."""
        try:
            response = self.write(
                lambda machine: machine.end(name, producer, is_commit=commit, client_version=client_version)
            )
        except BrokerError as refused:
            return refused.code
        assert response.error_code == 0
        return Producer(response.producer_id, response.producer_epoch)

    def verify(self, producer: Producer, tp: TopicPartition = P0, *, name: str = ID) -> ErrorCode:
        return self.machine.verify(name, producer, [tp])[tp]

    def state(self, name: str = ID) -> str:
        answer = self.machine.describe(name)
        return answer.transaction_state or ErrorCode(answer.error_code).name
