"""What DescribeTransactions and ListTransactions tell about transactions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from penstock.coordination.transactions.state import STATES_BY_LABEL, Transaction, TransactionState
from penstock.model import ErrorCode
from penstock.protocol.schema.describe_transactions import DescribeTransactionsResponse
from penstock.protocol.schema.list_transactions import ListTransactionsResponse


def described(transactional_id: str, found: Transaction | None) -> DescribeTransactionsResponse.TransactionState:
    if not transactional_id:
        return refused_description(transactional_id, ErrorCode.INVALID_REQUEST)
    if found is None:
        return refused_description(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    topics: dict[str, list[int]] = {}
    for tp in sorted(found.partitions):
        topics.setdefault(tp.topic, []).append(tp.partition)
    return DescribeTransactionsResponse.TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[DescribeTransactionsResponse.TopicData(topic=name, partitions=ids) for name, ids in topics.items()],
    )


def refused_description(transactional_id: str, error: ErrorCode) -> DescribeTransactionsResponse.TransactionState:
    return DescribeTransactionsResponse.TransactionState(transactional_id=transactional_id, error_code=error)


class Filters(msgspec.Struct, frozen=True):
    """Which transactions are asked for; nothing set: all."""

    states: frozenset[TransactionState] | None = None
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1  # those that began longer ago than that; -1: all


def parse_states(labels: Sequence[str]) -> tuple[frozenset[TransactionState] | None, list[str]]:
    """The states to keep (None: all), and the names among them that nobody knows."""
    if not labels:
        return None, []
    known = frozenset(STATES_BY_LABEL[label] for label in labels if label in STATES_BY_LABEL)
    return known, sorted({label for label in labels if label not in STATES_BY_LABEL})


def listed(
    transactions: Iterable[Transaction], filters: Filters, now_ms: int
) -> list[ListTransactionsResponse.TransactionState]:
    return [
        ListTransactionsResponse.TransactionState(
            transactional_id=each.transactional_id, producer_id=each.producer_id, transaction_state=each.state.label
        )
        for each in transactions
        if _is_asked_for(each, filters, now_ms)
    ]


def _is_asked_for(transaction: Transaction, filters: Filters, now_ms: int) -> bool:
    return (
        (not filters.producer_ids or transaction.producer_id in filters.producer_ids)
        and (filters.states is None or transaction.state in filters.states)
        and (filters.duration_ms < 0 or now_ms - transaction.started_ms > filters.duration_ms)
    )
