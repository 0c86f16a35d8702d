"""How long a request of a hot API takes: some are timed (``telemetry.requests``), until their slot completes if they
are parked.

A hot handler counts down and hands the request that is due to ``serve_timed``, which calls it again::

    left = meter.left - 1
    meter.left = left
    if not left:
        return serve_timed(self.receive, meter, clock, connection, buffer, ...)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headpond.ports import Clock
from headpond.telemetry.requests import RequestMeter

if TYPE_CHECKING:
    from headpond.broker.net.connection import Connection


class Timing:
    """A request that is parked and being timed."""

    __slots__ = ("_meter", "_parked_s", "_started_s", "_weight")

    def __init__(self, meter: RequestMeter, started_s: float, parked_s: float, weight: int) -> None:
        self._meter = meter
        self._started_s = started_s
        self._parked_s = parked_s
        self._weight = weight

    def end(self, now_s: float) -> None:
        self._meter.duration.observe(now_s - self._started_s, self._weight)
        self._meter.parked.observe(now_s - self._parked_s, self._weight)


def serve_timed(
    handler: Callable[..., bytes | None], meter: RequestMeter, clock: Clock, connection: Connection, *frame: Any
) -> bytes | None:
    started_s = clock.monotonic()
    weight = meter.begin(started_s)
    meter.left += 1  # the handler counts it again
    newest, settled = connection.newest_slot, meter.settled
    answer = handler(connection, *frame)
    if meter.settled == settled:
        note(meter, clock, connection, newest, started_s, weight)
    else:
        meter.give_back(weight)
    return answer


def note(
    meter: RequestMeter, clock: Clock, connection: Connection, newest_before: Any, started_s: float, weight: int = 1
) -> None:
    """The handler is done with a request: it was answered, or it has a slot that is waiting."""
    now_s = clock.monotonic()
    slot = connection.newest_slot
    if slot is None or slot is newest_before or slot.parts is not None:
        meter.duration.observe(now_s - started_s, weight)
    else:
        connection.server.timed_slots[slot] = Timing(meter, started_s, now_s, weight)
