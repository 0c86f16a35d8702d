"""What takes long is done in slices and, as it takes memory too, a few at a time.

    request    up to 8 KiB is decoded at once; a larger one in slices, when a lane has a place for it
    handler    walks its elements in slices (``Context.in_slices``); for the second it takes a place among the long ones
    answer     of a long one: encoded, counted and dropped in slices, in pieces

Everything is counted in elements and bytes, never in time: the same request makes the same slices everywhere. A request
that waits for a lane is not decoded yet: it stays where it was received, and counts there. Lanes are taken in the
order of the list above, and whoever has one of the long places waits for no other: nobody waits in a circle.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from headpond.coordination.slices import Slices

log = logging.getLogger("headpond.pacing")

AT_ONCE_BYTES_MAX = 8_192
"""A request of up to this size is decoded at once: 8,192 elements at most, which takes 5 ms."""
MIDDLING_BYTES_MAX = 65_536
MIDDLING_AT_ONCE = 32
"""Decoded they take 54 times their size at most: 110 MiB, all of them."""
LARGE_AT_ONCE = 2
"""A million elements each: 450 MiB at most, and as much for what is answered. Requests that look into records keep
their places for seconds, so they have as many of their own: 200 MiB for each."""
LONG_AT_ONCE = 16
"""Answers that are being put together: what a broker with 30,000 partitions says of each takes 10 MB."""
A_ROW, A_LOOK = 16, 1
"""What it costs to put a row of an answer together (8 us), and to look at an element of a request (0.5 us)."""
SLICE_COST = 8_192
"""Spent at a stretch: about 4 ms, 500 rows."""
COST_MAX = 64_000_000
"""Of one answer: four million rows, which are far beyond ``ANSWER_BYTES_MAX``."""
ANSWER_BYTES_MAX = 104_857_600
"""What clients take at most: librdkafka's ``receive.message.max.bytes``. The protocol has no error for an answer
that is too large: the connection is closed."""


class AnswerTooLarge(Exception):
    """Nobody could receive the answer."""


class Lane:
    """So many at a time, first come, first served."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_waking = False

    def take(self) -> bool:
        """False: it is full, or others wait; ``when_free`` tells when to try again."""
        if not self._free or (self._waiting and not self._is_waking):
            return False
        self._free -= 1
        return True

    def when_free(self, try_again: Callable[[], None]) -> None:
        self._waiting.append(try_again)

    async def enter(self) -> None:
        """Take a place, now or when there is one."""
        if self.take():
            return
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def try_again() -> None:
            if not entered.done() and self.take():
                entered.set_result(None)

        self.when_free(try_again)
        try:
            await entered
        except asyncio.CancelledError:
            if entered.done() and not entered.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        self._free += 1
        if self._is_waking:
            return
        while self._free and self._waiting:
            try_again = self._waiting.popleft()
            self._is_waking = True
            try:
                try_again()
            except Exception:  # the others have not done it: they get their places
                log.exception("a request that waited for its turn met a bug")
            finally:
                self._is_waking = False


class Pacing:
    """All that requests which take long share."""

    def __init__(self, slices: Slices) -> None:
        self.slices = slices
        self.middling = Lane(MIDDLING_AT_ONCE)
        self.large = Lane(LARGE_AT_ONCE)
        self.middling_looks = Lane(MIDDLING_AT_ONCE)
        self.large_looks = Lane(LARGE_AT_ONCE)
        self.long = Lane(LONG_AT_ONCE)

    def lane_for(self, request_bytes: int, *, looks_into_records: bool) -> Lane:
        if request_bytes <= MIDDLING_BYTES_MAX:
            return self.middling_looks if looks_into_records else self.middling
        return self.large_looks if looks_into_records else self.large
