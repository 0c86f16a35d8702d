"""A transaction as a record of ``__transaction_state``, in Kafka's format, and back.

Value version 1 is written since transaction version 1, version 0 before it: that one has no place for the previous and
the next producer id, nor for the client's version. Both are read.
"""

from __future__ import annotations

from collections.abc import Callable

from headpond.coordination.records import CoordinatorRecord, RecordCodec, RecordType
from headpond.coordination.transactions.state import NO_PRODUCER_ID, STATES_BY_LABEL, Transaction, TransactionState
from headpond.model import TopicPartition
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.schema.transaction_records import TransactionLogKey, TransactionLogValue

FLEXIBLE_SINCE = 1
NEVER_STORED = frozenset({TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE})
_STATES = {int(state): state for state in STATES_BY_LABEL.values() if state not in NEVER_STORED}


def transaction_codec(transaction_version: Callable[[], int]) -> RecordCodec:
    """``transaction_version``: the finalized feature."""

    def version_of(value: TransactionLogValue) -> int:
        return 1 if transaction_version() >= FLEXIBLE_SINCE else 0

    return RecordCodec({0: RecordType(TransactionLogKey, TransactionLogValue, 1, version_of)})


def to_record(transaction: Transaction, transaction_version: int) -> CoordinatorRecord:
    has_tags = transaction_version >= FLEXIBLE_SINCE
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id if has_tags else NO_PRODUCER_ID,
        next_producer_id=transaction.next_producer_id if has_tags else NO_PRODUCER_ID,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_by_topic(transaction),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version if has_tags else 0,
    )
    return CoordinatorRecord(TransactionLogKey(transactional_id=transaction.transactional_id), value)


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), None)


def from_record(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """Raises ``MalformedMessage``."""
    state = _STATES.get(value.transaction_status)
    if state is None:
        raise MalformedMessage(f"{transactional_id!r} is in a transaction state {value.transaction_status}")
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        updated_ms=value.transaction_last_update_timestamp_ms,
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )


def _by_topic(transaction: Transaction) -> list[TransactionLogValue.PartitionsSchema] | None:
    if transaction.state is TransactionState.EMPTY:
        return None
    topics: dict[str, list[int]] = {}
    for tp in sorted(transaction.partitions):
        topics.setdefault(tp.topic, []).append(tp.partition)
    return [TransactionLogValue.PartitionsSchema(topic=name, partition_ids=ids) for name, ids in topics.items()]
