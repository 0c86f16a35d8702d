"""What a coordinator knows about one transactional id. Never changed: each step makes the next one (``transitions``).

    Empty --- a partition is added ---> Ongoing --- EndTxn, time-out, ---> PrepareCommit --- all markers ---> Complete-
                                           ^        a new producer         PrepareAbort      are written      Commit,
                                           |                                                                  Abort
                                           +------------ a partition is added (Complete* is as good as Empty) ---+

A transaction is decided when its Prepare* record is committed: from then on a crash only delays its markers. ``Dead``
and ``PrepareEpochFence`` are names that Kafka knows and neither Kafka nor we ever write.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from headpond.model import TopicPartition

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
EPOCH_MAX = 32_767
EPOCH_LAST = EPOCH_MAX - 1
"""The last epoch that a client gets: one is left to fence it with."""

EPOCH_BUMP_SINCE = 2
"""The transaction version (KIP-890) from which on each transaction has an epoch of its own."""


class TransactionState(IntEnum):
    """As stored."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """As DescribeTransactions and ListTransactions say it."""
        return self.name.title().replace("_", "")


STATES_BY_LABEL = {state.label: state for state in TransactionState}

PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
UNFINISHED = PREPARED | {TransactionState.ONGOING}
AT_REST = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""Nothing is open: an id that stays so for long enough is forgotten."""


class Transaction(msgspec.Struct, frozen=True):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    updated_ms: int
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIME  # of the transaction that is open or was last
    previous_producer_id: int = NO_PRODUCER_ID  # the one before the last step; mostly the same
    next_producer_id: int = NO_PRODUCER_ID  # takes over when the markers are written: the epochs are used up
    client_version: int = 0  # the transaction version that its client spoke
    last_epoch: int = NO_EPOCH  # before the last bump: a retry names it. Not stored: a restart forgets it, as Kafka's

    @property
    def is_commit(self) -> bool:
        return self.state is TransactionState.PREPARE_COMMIT

    @property
    def is_exhausted(self) -> bool:
        return self.producer_epoch >= EPOCH_LAST
