"""The transactions of one partition of ``__transaction_state``, as its leader coordinates them.

Promises   a transaction is committed or aborted when its Prepare* record is committed, and never the other way
           afterwards; each that got so far ends, on all its partitions; an epoch that was replaced is of no use again.
Crash      everything durable comes back by ``replay``; ``loaded`` sends the markers of what was decided and not ended.
           Forgotten are the epochs before the last bump, by which a retry of InitProducerId is told from a zombie.

Refusals are raised as ``BrokerError`` with the code that Kafka 4.3 answers, in its order of checks. An id that is busy
(its last record not committed yet, its markers on their way) is refused with CONCURRENT_TRANSACTIONS; clients retry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, Protocol

from headpond.config.transactions import TransactionSettings
from headpond.coordination.home import Ended, Producer
from headpond.coordination.records import CoordinatorRecord
from headpond.coordination.runtime import Decision
from headpond.coordination.slices import InSlices, Work, at_once
from headpond.coordination.transactions import transitions
from headpond.coordination.transactions.book import A, TransactionBook
from headpond.coordination.transactions.completion import Completion
from headpond.coordination.transactions.endings import ends_v1, ends_v2
from headpond.coordination.transactions.listing import Filters, described, listed
from headpond.coordination.transactions.markers import MarkerSender
from headpond.coordination.transactions.state import (
    EPOCH_BUMP_SINCE,
    EPOCH_LAST,
    NO_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    Transaction,
    TransactionState,
)
from headpond.coordination.transactions.upkeep import Upkeep
from headpond.model import BrokerError, ErrorCode, TopicPartition
from headpond.ports import Clock
from headpond.protocol.schema.describe_transactions import DescribeTransactionsResponse
from headpond.protocol.schema.end_txn import EndTxnResponse
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headpond.protocol.schema.list_transactions import ListTransactionsResponse

WriteSoon = Callable[[str, Callable[["TransactionMachine"], Decision[None]]], None]


class ProducerIdSource(Protocol):
    def take_nowait(self) -> int | None:
        """A new producer id; None: none is reserved now."""


class Facts(NamedTuple):
    """What a machine asks about the world around it."""

    coordinator_epoch: Callable[[], int]
    """The leader epoch of its partition."""
    transaction_version: Callable[[], int]
    """The finalized feature."""
    exists: Callable[[TopicPartition], bool]
    """A partition whose topic was deleted needs no marker."""


class TransactionMachine:
    """``coordination.runtime.Machine``."""

    def __init__(
        self,
        *,
        settings: Callable[[], TransactionSettings],
        clock: Clock,
        write_soon: WriteSoon,
        producer_ids: ProducerIdSource,
        markers: MarkerSender,
        facts: Facts,
        in_slices: InSlices = at_once,
    ) -> None:
        """``in_slices``: for what takes long."""
        self._settings = settings
        self._clock = clock
        self._producer_ids = producer_ids
        self._transaction_version = facts.transaction_version
        self._book = TransactionBook(facts.transaction_version)
        self.completion = Completion(
            self._book,
            clock,
            write_soon,
            markers=markers,
            coordinator_epoch=facts.coordinator_epoch,
            exists=facts.exists,
        )
        self.upkeep = Upkeep(self._book, settings, clock, write_soon, lambda was: self._abort(was, None), in_slices)

    # --- what handlers decide through ``CoordinatorRuntime.write``

    def init_producer_id(self, request: InitProducerIdRequest) -> Decision[InitProducerIdResponse]:
        """A transactional producer starts, or goes on after an error, naming the id and epoch that it has."""
        transactional_id, timeout_ms = request.transactional_id, request.transaction_timeout_ms
        if not transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._settings().timeout_ms_max:
            raise BrokerError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        if self._book.is_busy(transactional_id):
            raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
        now_ms = self._clock.now_ms()
        was = self._book.current(transactional_id)
        if was is None:
            was = transitions.new(transactional_id, self._new_producer_id(), timeout_ms, now_ms)
        is_first = request.producer_id == NO_PRODUCER_ID
        if not is_first and not _may_have(was, request.producer_id, request.producer_epoch):
            raise BrokerError(ErrorCode.PRODUCER_FENCED)
        if was.state is TransactionState.ONGOING:  # its producer is gone: abort, and let this one ask again
            return self._abort(was, _refused(ErrorCode.CONCURRENT_TRANSACTIONS))
        expected_epoch = None if is_first else request.producer_epoch
        if was.is_exhausted and expected_epoch in (None, was.producer_epoch):
            now = transitions.with_new_producer_id(
                was, self._new_producer_id(), timeout_ms, now_ms, keeps_last_epoch=not is_first
            )
        else:
            now = transitions.with_next_epoch(was, expected_epoch, timeout_ms, now_ms)
        answer = InitProducerIdResponse(producer_id=now.producer_id, producer_epoch=now.producer_epoch)
        return self._book.step(now, answer)

    def add_partitions(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition], *, client_version: int
    ) -> Decision[None]:
        """AddPartitionsToTxn, AddOffsetsToTxn, and what version-2 clients leave to Produce and TxnOffsetCommit."""
        was = self._known(transactional_id)
        if self._book.is_busy(transactional_id):
            raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
        _require_current(was, producer)
        if was.state is TransactionState.ONGOING and was.partitions.issuperset(partitions):
            return Decision(None)
        now = transitions.with_partitions(was, partitions, client_version, self._clock.now_ms())
        if was.state is not TransactionState.ONGOING:
            self.upkeep.began(now)
        return self._book.step(now, None)

    def end(
        self, transactional_id: str, producer: Producer, *, is_commit: bool, client_version: int
    ) -> Decision[EndTxnResponse]:
        """Answered when the outcome is durable; the markers follow."""
        was = self._known(transactional_id)
        is_busy = self._book.is_busy(transactional_id)
        bumps = client_version >= EPOCH_BUMP_SINCE
        may_end = ends_v2 if bumps else ends_v1
        if not may_end(was, producer.producer_id, producer.epoch, is_commit=is_commit, is_busy=is_busy):
            return Decision(_ended(was) if bumps else EndTxnResponse())
        now = transitions.prepared(
            was,
            is_commit=is_commit,
            client_version=client_version,
            next_producer_id=self._new_producer_id() if bumps and was.is_exhausted else NO_PRODUCER_ID,
            now_ms=self._clock.now_ms(),
        )
        # A version-2 producer goes on with what will be true when the markers are written.
        return self._book.step(now, _ended(transitions.completed(now, now.updated_ms)) if bumps else EndTxnResponse())

    # --- what handlers look at through ``CoordinatorRuntime.read``

    def verify(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether each is in the producer's open transaction, durably; TRANSACTION_ABORTABLE: it is not."""
        if not transactional_id:
            return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
        found = self._book.committed(transactional_id)
        if found is None:
            return dict.fromkeys(partitions, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        try:
            _require_current(found, producer)
        except BrokerError as refused:
            return dict.fromkeys(partitions, refused.code)
        if found.state in PREPARED:
            return dict.fromkeys(partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
        return {tp: ErrorCode.NONE if tp in found.partitions else ErrorCode.TRANSACTION_ABORTABLE for tp in partitions}

    def describe(self, transactional_id: str) -> DescribeTransactionsResponse.TransactionState:
        return described(transactional_id, self._book.committed(transactional_id))

    def list(self, filters: Filters) -> Work[list[ListTransactionsResponse.TransactionState]]:
        return listed([*self._book.all_committed()], filters, self._clock.now_ms())

    def unfinished(self) -> Iterator[Transaction]:
        """Those that are open or ending, for the metrics."""
        return self._book.unfinished()

    # --- what the runtime calls

    def replay(self, record: CoordinatorRecord, producer: Producer | None) -> None:
        self._book.replay(record)

    def replay_end(self, ended: Ended) -> None:
        """Nothing here is written within a transaction."""

    def loaded(self) -> None:
        self.completion.resume()
        self.upkeep.start()

    def close(self) -> None:
        self.completion.close()
        self.upkeep.close()

    # --- inside

    def _known(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST)
        found = self._book.current(transactional_id)
        if found is None:
            raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return found

    def _abort(self, was: Transaction, answer: A) -> Decision[A]:
        version = self._transaction_version()
        needs_id = version >= EPOCH_BUMP_SINCE and was.is_exhausted
        now = transitions.fenced_and_aborted(
            was,
            server_version=version,
            next_producer_id=self._new_producer_id() if needs_id else NO_PRODUCER_ID,
            now_ms=self._clock.now_ms(),
        )
        return self._book.step(now, answer)

    def _new_producer_id(self) -> int:
        producer_id = self._producer_ids.take_nowait()
        if producer_id is None:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "No producer id is at hand; try again.")
        return producer_id


def _may_have(was: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether the producer that has these may be the one that the id belongs to; its epoch is looked at later."""
    return (
        was.producer_epoch == NO_EPOCH  # just made: the producer recovers from having been forgotten
        or producer_id == was.producer_id
        or (producer_id == was.previous_producer_id and epoch >= EPOCH_LAST)  # it did not hear of its new id
    )


def _require_current(found: Transaction, producer: Producer) -> None:
    if producer.producer_id != found.producer_id:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if producer.epoch != found.producer_epoch:
        raise BrokerError(ErrorCode.PRODUCER_FENCED)


def _ended(now: Transaction) -> EndTxnResponse:
    return EndTxnResponse(producer_id=now.producer_id, producer_epoch=now.producer_epoch)


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
