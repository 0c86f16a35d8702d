"""Who may end a transaction how: Kafka's answers to EndTxn, for both protocols.

Version 1 (EndTxn v0-4)   the epoch must be the current one. Only an open transaction can be ended; the same end again
                          is confirmed, the opposite one is INVALID_TXN_STATE.
Version 2 (EndTxn v5)     the end raises the epoch, so a retry names the one before (or the last one of the producer id
                          before), and the current one means the next transaction. That may be aborted unopened:

                  |  abort, retry    abort, current   commit, retry    commit, current
      Empty       |  fenced          raises epoch     fenced           INVALID_TXN_STATE
      Complete-   |
        Abort     |  confirmed       raises epoch     INVALID_TXN_...  INVALID_TXN_STATE
        Commit    |  INVALID_TXN_... raises epoch     confirmed        INVALID_TXN_STATE

Fenced is PRODUCER_FENCED; so is a retry after an end of version 1, which raised no epoch. While a transaction is
ending, or a record about it is not committed yet, the answer is CONCURRENT_TRANSACTIONS (``is_busy``).
"""

from __future__ import annotations

from headpond.coordination.transactions.state import EPOCH_BUMP_SINCE, EPOCH_LAST, Transaction, TransactionState
from headpond.model import BrokerError, ErrorCode

_COMPLETE = {TransactionState.COMPLETE_COMMIT: True, TransactionState.COMPLETE_ABORT: False}


def ends_v1(was: Transaction, producer_id: int, epoch: int, *, is_commit: bool, is_busy: bool) -> bool:
    """True: end it now. False: that happened already. Raises what to answer otherwise."""
    if producer_id != was.producer_id:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if epoch != was.producer_epoch:
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    if is_busy:
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if was.state is TransactionState.ONGOING:
        return True
    if _COMPLETE.get(was.state) is is_commit:
        return False
    raise BrokerError(ErrorCode.INVALID_TXN_STATE)


def ends_v2(was: Transaction, producer_id: int, epoch: int, *, is_commit: bool, is_busy: bool) -> bool:
    """True: end it now, and raise the epoch. False: that happened already. Raises what to answer otherwise."""
    if is_busy:  # first of all: the producer may know of a new id already that is not in effect yet
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_after_overflow = producer_id == was.previous_producer_id and epoch == EPOCH_LAST and was.producer_epoch == 0
    if producer_id != was.producer_id and not is_after_overflow:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    # Only an end that raised the epoch can be asked for again with the one before it: after one of version 1 that is
    # the epoch of a producer that the present one has fenced.
    has_raised = was.state in _COMPLETE and was.client_version >= EPOCH_BUMP_SINCE
    is_retry = has_raised and (is_after_overflow or epoch + 1 == was.producer_epoch)
    if not is_retry and epoch != was.producer_epoch:
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    if is_retry:
        if _COMPLETE[was.state] is is_commit:
            return False
    elif was.state is TransactionState.ONGOING or not is_commit:
        return True
    raise BrokerError(ErrorCode.INVALID_TXN_STATE)
