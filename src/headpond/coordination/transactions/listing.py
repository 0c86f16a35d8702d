"""What DescribeTransactions and ListTransactions tell about transactions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from headpond.coordination.slices import Work
from headpond.coordination.transactions.state import STATES_BY_LABEL, Transaction, TransactionState
from headpond.model import ErrorCode
from headpond.protocol.schema.describe_transactions import DescribeTransactionsResponse
from headpond.protocol.schema.list_transactions import ListTransactionsResponse

PER_SLICE = 1_000
"""Transactions that are looked at before the loop turns."""


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
    producer_ids: Collection[int] = ()
    duration_ms: int = -1  # those that began longer ago than that; -1: all


def parse_states(labels: dict[str, int]) -> tuple[frozenset[TransactionState] | None, list[str]]:
    """The states to keep (None: all), and the names among them that are unknown. Takes what it knows out of them."""
    if not labels:
        return None, []
    known = frozenset(state for label, state in STATES_BY_LABEL.items() if labels.pop(label, 0))
    return known, list(labels)


def listed(
    transactions: Sequence[Transaction], filters: Filters, now_ms: int
) -> Work[list[ListTransactionsResponse.TransactionState]]:
    found: list[ListTransactionsResponse.TransactionState] = []
    for start in range(0, len(transactions), PER_SLICE):
        if start:
            yield None
        found += [
            ListTransactionsResponse.TransactionState(
                transactional_id=each.transactional_id, producer_id=each.producer_id, transaction_state=each.state.label
            )
            for each in transactions[start : start + PER_SLICE]
            if _is_asked_for(each, filters, now_ms)
        ]
    return found


def _is_asked_for(transaction: Transaction, filters: Filters, now_ms: int) -> bool:
    return (
        (not filters.producer_ids or transaction.producer_id in filters.producer_ids)
        and (filters.states is None or transaction.state in filters.states)
        and (filters.duration_ms < 0 or now_ms - transaction.started_ms > filters.duration_ms)
    )
