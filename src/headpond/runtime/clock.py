"""The machine's clocks, and timers on the running loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from headpond.ports import TimerHandle


class SystemClock:
    """``ports.Clock`` of the machine. ``call_later`` and ``sleep`` need a running loop; the readings do not."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle:
        return asyncio.get_running_loop().call_later(delay_s, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
