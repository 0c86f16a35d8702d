"""What the produce path asks the coordinator before the first append of a transaction to a partition (KIP-890).

Produce v3-v11   *verifies* that the client has added the partition: without that, a late request would open a
                 transaction that nobody ever ends, and the last stable offset would stand still.
Produce v12      *adds* the partition on the way; its client sends no AddPartitionsToTxn.

TxnOffsetCommit does the same with the partition of ``__consumer_offsets`` (v3-v4 verifies, v5 adds).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from headpond.coordination.home import Producer
from headpond.coordination.runtime import CoordinatorRuntime
from headpond.coordination.transactions.machine import TransactionMachine
from headpond.coordination.transactions.state import EPOCH_BUMP_SINCE
from headpond.model import BrokerError, ErrorCode, TopicPartition

PRODUCE_KNOWS_ABORTABLE_SINCE = 11
PRODUCE_ADDS_SINCE = 12
OFFSET_COMMIT_KNOWS_ABORTABLE_SINCE = 4
OFFSET_COMMIT_ADDS_SINCE = 5

Results = Mapping[TopicPartition, ErrorCode]


class TxnVerifier(Protocol):
    """The coordinator of a transactional id, wherever it is. Answers NONE or the coordinator's own code for each
    partition; never raises."""

    async def verify(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> Results:
        """Is each in the producer's open transaction? TRANSACTION_ABORTABLE: it is not."""

    async def add(self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]) -> Results:
        """Put all into the producer's transaction, which this opens if need be; answers when that is durable."""


class LocalTxnVerifier:
    """``TxnVerifier`` where this broker coordinates every transactional id."""

    def __init__(self, runtime: CoordinatorRuntime[TransactionMachine]) -> None:
        self._runtime = runtime

    async def verify(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> Results:
        try:
            return self._runtime.read(
                transactional_id, lambda machine: machine.verify(transactional_id, producer, partitions)
            )
        except BrokerError as failed:
            return dict.fromkeys(partitions, failed.code)

    async def add(self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]) -> Results:
        try:
            await self._runtime.write(
                transactional_id,
                lambda machine: machine.add_partitions(
                    transactional_id, producer, partitions, client_version=EPOCH_BUMP_SINCE
                ),
            )
        except BrokerError as failed:
            return dict.fromkeys(partitions, failed.code)
        return dict.fromkeys(partitions, ErrorCode.NONE)


_CLIENT_RETRIES_ELSEHOW = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def produce_error(code: ErrorCode, produce_version: int) -> ErrorCode:
    """The coordinator's refusal, in the codes that a producer of that version handles. What it should simply send
    again is NOT_ENOUGH_REPLICAS: it retries that without asking for new metadata."""
    if code in _CLIENT_RETRIES_ELSEHOW:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and produce_version < PRODUCE_ADDS_SINCE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return verification_error(code, knows_abortable=produce_version >= PRODUCE_KNOWS_ABORTABLE_SINCE)


def verification_error(code: ErrorCode, *, knows_abortable: bool) -> ErrorCode:
    """What Produce and TxnOffsetCommit have in common."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code
