"""What the handlers of transactions have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headpond.broker.requests.context import Context
from headpond.coordination.runtime import Decision
from headpond.coordination.transactions.machine import TransactionMachine
from headpond.model import BrokerError, ErrorCode

A = TypeVar("A")

VERSION_1, VERSION_2 = 0, 2
"""The client's transaction version, as it is stored: Kafka writes 0 for every client before version 2."""


async def write(ctx: Context, transactional_id: str, decide: Callable[[TransactionMachine], Decision[A]]) -> A:
    """Raises ``BrokerError`` with the code to answer."""
    if not transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    return await ctx.broker.transactions.write(transactional_id, decide)


def read(ctx: Context, transactional_id: str, look: Callable[[TransactionMachine], A]) -> A:
    """Raises ``BrokerError`` with the code to answer."""
    if not transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    return ctx.broker.transactions.read(transactional_id, look)


def for_clients_before(ctx: Context, version: int, code: ErrorCode) -> ErrorCode:
    """PRODUCER_FENCED came later: older clients know INVALID_PRODUCER_EPOCH."""
    if ctx.version < version and code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
