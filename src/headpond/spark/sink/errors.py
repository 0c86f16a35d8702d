"""What a user of the sink can be told: one sentence, never a secret, never a record's content."""

from __future__ import annotations

from headpond.client import ClientError
from headpond.model import ErrorCode

FENCED = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)
"""The transaction is not ours any more."""


class WrongRow(ValueError):
    """A row that can't be written; nothing of its write will be."""


class WrongWrite(ValueError):
    """A write that can't be done at all: its columns, or its mode."""


class SinkFailed(RuntimeError):
    """The write was not done; what it had begun was undone."""


def in_words(error: ClientError, transactional_id: str, timeout_ms: int) -> SinkFailed:
    """Why a transaction could not be done."""
    if error.code in FENCED:
        return SinkFailed(
            f"nothing was written: another run with the transactional id {transactional_id} took over, or the "
            f"transaction was open for longer than kafka.transaction.timeout.ms ({timeout_ms}) ({error.code.name})"
        )
    if error.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        return SinkFailed(
            f"nothing was written: kafka.transaction.timeout.ms ({timeout_ms}) is more than the brokers allow "
            "(their transaction.max.timeout.ms)"
        )
    if error.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return SinkFailed(f"nothing was written: no right to use the transactional id {transactional_id}")
    if error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return SinkFailed(
            f"nothing was written: no right to read the group {transactional_id}, which remembers what was written"
        )
    return SinkFailed(f"nothing was written: {error}")
