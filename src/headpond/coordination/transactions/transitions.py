"""The steps that a transaction takes. Each is pure: what was and what is asked in, what is now true out.

Epochs   KIP-360: InitProducerId raises the epoch, and tells a retry from a zombie by the epoch that it names.
         KIP-890: since transaction version 2 the end of each transaction raises it too, so that nothing of this one
         can reach the next. At 32766 the producer gets a new id at epoch 0 instead; 32767 only ever fences.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from headpond.coordination.transactions.state import (
    AT_REST,
    EPOCH_BUMP_SINCE,
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    PREPARED,
    Transaction,
    TransactionState,
)
from headpond.model import BrokerError, ErrorCode, TopicPartition, invariant


def new(transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """Of an id that was never seen. It has no epoch yet: ``with_next_epoch`` makes it 0."""
    return Transaction(transactional_id, producer_id, NO_EPOCH, timeout_ms, TransactionState.EMPTY, now_ms)


def with_next_epoch(was: Transaction, expected_epoch: int | None, timeout_ms: int, now_ms: int) -> Transaction:
    """For a producer that starts (None) or that goes on after an error, naming the epoch that it has. Raises
    PRODUCER_FENCED if another producer took the id since."""
    epoch = was.producer_epoch
    if expected_epoch is None:
        next_epoch, last_epoch = epoch + 1, NO_EPOCH
    elif epoch == NO_EPOCH or expected_epoch == epoch:
        next_epoch, last_epoch = epoch + 1, epoch
    elif expected_epoch == was.last_epoch and epoch < EPOCH_MAX:  # it did not hear our answer
        next_epoch, last_epoch = epoch, was.last_epoch
    else:
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    invariant(next_epoch < EPOCH_MAX, "no epoch is left", was.transactional_id, epoch)
    return _at_rest(was, was.producer_id, next_epoch, last_epoch, timeout_ms, now_ms)


def with_new_producer_id(
    was: Transaction, producer_id: int, timeout_ms: int, now_ms: int, *, keeps_last_epoch: bool
) -> Transaction:
    """The epochs are used up. ``keeps_last_epoch``: the producer named its epoch, and may retry."""
    last_epoch = was.producer_epoch if keeps_last_epoch else NO_EPOCH
    return _at_rest(was, producer_id, 0, last_epoch, timeout_ms, now_ms)


def with_partitions(was: Transaction, added: Iterable[TopicPartition], client_version: int, now_ms: int) -> Transaction:
    is_first = was.state in AT_REST
    return replace(
        was,
        state=TransactionState.ONGOING,
        partitions=was.partitions.union(added),
        started_ms=now_ms if is_first else was.started_ms,
        updated_ms=now_ms,
        client_version=client_version,
        previous_producer_id=was.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )


def prepared(
    was: Transaction, *, is_commit: bool, client_version: int, next_producer_id: int = NO_PRODUCER_ID, now_ms: int
) -> Transaction:
    """Decided. A version-2 transaction without partitions may be aborted too: it only raises the epoch."""
    bumps = client_version >= EPOCH_BUMP_SINCE
    return replace(
        was,
        state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
        producer_epoch=min(was.producer_epoch + 1, EPOCH_MAX) if bumps else was.producer_epoch,
        last_epoch=was.producer_epoch if bumps else was.last_epoch,
        started_ms=now_ms if was.state in AT_REST else was.started_ms,
        updated_ms=now_ms,
        client_version=client_version,
        previous_producer_id=was.producer_id,
        next_producer_id=next_producer_id,
    )


def fenced_and_aborted(was: Transaction, *, server_version: int, next_producer_id: int, now_ms: int) -> Transaction:
    """The coordinator aborts: it timed out, or a new producer came. Its producer's epoch is over either way."""
    if server_version >= EPOCH_BUMP_SINCE:
        return prepared(
            was,
            is_commit=False,
            client_version=server_version,
            next_producer_id=next_producer_id if was.is_exhausted else NO_PRODUCER_ID,
            now_ms=now_ms,
        )
    fenced = replace(was, producer_epoch=min(was.producer_epoch + 1, EPOCH_MAX), last_epoch=NO_EPOCH)
    return prepared(fenced, is_commit=False, client_version=0, now_ms=now_ms)


def completed(was: Transaction, now_ms: int) -> Transaction:
    """Every partition has its marker."""
    invariant(was.state in PREPARED, "a transaction ended that nobody decided", was.transactional_id, was.state)
    takes_over = was.next_producer_id != NO_PRODUCER_ID and was.client_version >= EPOCH_BUMP_SINCE
    return replace(
        was,
        state=TransactionState.COMPLETE_COMMIT if was.is_commit else TransactionState.COMPLETE_ABORT,
        producer_id=was.next_producer_id if takes_over else was.producer_id,
        producer_epoch=0 if takes_over else was.producer_epoch,
        partitions=frozenset(),
        updated_ms=now_ms,
        previous_producer_id=was.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )


def _at_rest(
    was: Transaction, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
) -> Transaction:
    return replace(
        was,
        state=TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        started_ms=NO_TIME,
        updated_ms=now_ms,
        previous_producer_id=was.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )
