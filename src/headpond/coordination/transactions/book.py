"""What a coordinator remembers of its transactional ids, and how a record about one is written.

One record about an id at a time: until it is committed the id is busy, and what is told about it (``committed``) is
what was true before. Only ``replay`` changes what the records stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from msgspec.structs import replace

from headpond.coordination.records import CoordinatorRecord
from headpond.coordination.runtime import Decision
from headpond.coordination.transactions.records import from_record, to_record, tombstone
from headpond.coordination.transactions.state import PREPARED, UNFINISHED, Transaction
from headpond.model import ErrorCode
from headpond.protocol.schema.transaction_records import TransactionLogKey, TransactionLogValue

A = TypeVar("A")


def _nothing(transactional_id: str) -> None:
    pass


class TransactionBook:
    def __init__(self, transaction_version: Callable[[], int]) -> None:
        self._transaction_version = transaction_version
        self._transactions: dict[str, Transaction] = {}
        self._unfinished: dict[str, None] = {}  # open or ending, in the order in which they became so
        self._uncommitted: dict[str, Transaction | None] = {}  # by id: what was true before the record under way
        self.on_decided: Callable[[str], None] = _nothing
        """Told when a Prepare* record is committed."""
        self.on_unsure: Callable[[str], None] = _nothing
        """Told when a record about an id could not be written, or not be seen committed."""

    # --- looking

    def current(self, transactional_id: str) -> Transaction | None:
        """As of the last record, committed or not; one that is being forgotten is still there."""
        return self._transactions.get(transactional_id) or self._uncommitted.get(transactional_id)

    def committed(self, transactional_id: str) -> Transaction | None:
        if transactional_id in self._uncommitted:
            return self._uncommitted[transactional_id]
        return self._transactions.get(transactional_id)

    def is_written(self, transactional_id: str) -> bool:
        """False: a record about it is under way."""
        return transactional_id not in self._uncommitted

    def is_busy(self, transactional_id: str) -> bool:
        """A record about it is under way, or its markers are."""
        found = self._transactions.get(transactional_id)
        return transactional_id in self._uncommitted or (found is not None and found.state in PREPARED)

    def all_committed(self) -> Iterator[Transaction]:
        for transactional_id in self._transactions:
            found = self.committed(transactional_id)
            if found is not None:
                yield found

    def all_current(self) -> Iterator[Transaction]:
        return iter(self._transactions.values())

    def unfinished_ids(self) -> Collection[str]:
        return self._unfinished

    def unfinished(self) -> Iterator[Transaction]:
        return (self._transactions[transactional_id] for transactional_id in self._unfinished)

    # --- writing

    def step(self, now: Transaction, answer: A) -> Decision[A]:
        """Write what is true ``now`` of an id that is not busy with another record."""
        transactional_id = now.transactional_id
        record = to_record(now, self._transaction_version())
        self._uncommitted[transactional_id] = self._transactions.get(transactional_id)

        def committed() -> None:
            del self._uncommitted[transactional_id]
            # What a record has no room for: retries are told by it; after a restart they are not, as with Kafka.
            self._transactions[transactional_id] = replace(
                self._transactions[transactional_id],
                last_epoch=now.last_epoch,
                previous_producer_id=now.previous_producer_id,
                next_producer_id=now.next_producer_id,
                client_version=now.client_version,
            )
            if now.state in PREPARED:
                self.on_decided(transactional_id)

        def failed(code: ErrorCode) -> None:
            del self._uncommitted[transactional_id]
            self.on_unsure(transactional_id)

        return Decision(answer, [record], on_committed=committed, on_failed=failed)

    def forget(self, expired: list[str]) -> Decision[None]:
        """Write that nothing is known about these ids any more."""
        for transactional_id in expired:
            self._uncommitted[transactional_id] = self._transactions[transactional_id]

        def settled(code: ErrorCode = ErrorCode.NONE) -> None:
            for transactional_id in expired:
                del self._uncommitted[transactional_id]

        return Decision(None, [tombstone(name) for name in expired], on_committed=settled, on_failed=settled)

    def replay(self, record: CoordinatorRecord) -> None:
        assert isinstance(record.key, TransactionLogKey)
        transactional_id = record.key.transactional_id
        if record.value is None:
            self._transactions.pop(transactional_id, None)
            self._unfinished.pop(transactional_id, None)
            return
        assert isinstance(record.value, TransactionLogValue)
        now = self._transactions[transactional_id] = from_record(transactional_id, record.value)
        if now.state in UNFINISHED:
            self._unfinished[transactional_id] = None
        else:
            self._unfinished.pop(transactional_id, None)
