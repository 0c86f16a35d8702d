"""Waiting until what was appended is durable and visible: below the partition's high watermark."""

from __future__ import annotations

import asyncio

from headpond.broker.replicas.replicas import Replica
from headpond.model import BrokerError, ErrorCode, NotLeader
from headpond.ports import Clock


async def visible(replica: Replica, end_offset: int, clock: Clock | None = None, timeout_s: float = 0.0) -> None:
    """Return when everything below ``end_offset`` is. Raises ``NotLeader`` when this broker stops leading first, and
    with a clock REQUEST_TIMED_OUT when it takes longer than that (outcome unknown: it may commit later)."""
    if replica.partition.high_watermark >= end_offset:
        return
    waiter = _Waiter()
    replica.produce_waiters.append((end_offset, waiter, 0))
    timer = clock.call_later(timeout_s, waiter.time_is_up) if clock is not None else None
    try:
        await waiter.future
    finally:
        if timer is not None:
            timer.cancel()


class _Waiter:
    """Stands in a partition's queue until the high watermark has come that far."""

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def reached(self, index: int) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def lost(self, index: int) -> None:
        self._fail(NotLeader(message="the leader moved before that was committed"))

    def time_is_up(self) -> None:
        self._fail(BrokerError(ErrorCode.REQUEST_TIMED_OUT))

    def _fail(self, error: BrokerError) -> None:
        if not self.future.done():
            self.future.set_exception(error)
