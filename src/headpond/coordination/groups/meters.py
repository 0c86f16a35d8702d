"""How often groups rebalance and how long that takes; counted for a whole broker, forgotten in a crash.

A rebalance begins when a group that was settled has to share its partitions anew, and is over when everybody has what
it was given: changes meanwhile belong to it. One that ends with nobody left has begun, but has no duration.
"""

from __future__ import annotations

from headpond.telemetry.metrics import Histogram

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds: from a member that comes alone to one for whom all others wait until its time-out."""


class RebalanceMeter:
    """Of the groups of one kind."""

    __slots__ = ("begun", "durations")

    def __init__(self) -> None:
        self.begun = 0
        self.durations = Histogram(SECONDS)


class GroupMeters:
    __slots__ = ("classic", "consumer")

    def __init__(self) -> None:
        self.classic = RebalanceMeter()
        self.consumer = RebalanceMeter()


class Stopwatch:
    """The rebalances that are under way among some groups of one kind."""

    __slots__ = ("_began_s", "_meter")

    def __init__(self, meter: RebalanceMeter) -> None:
        self._meter = meter
        self._began_s: dict[str, float] = {}

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._began_s

    def begin(self, group_id: str, now_s: float) -> None:
        if group_id not in self._began_s:
            self._began_s[group_id] = now_s
            self._meter.begun += 1

    def complete(self, group_id: str, now_s: float) -> float | None:
        """How long it took; None: it was not under way."""
        began_s = self._began_s.pop(group_id, None)
        if began_s is None:
            return None
        self._meter.durations.observe(now_s - began_s)
        return now_s - began_s

    def forget(self, group_id: str) -> None:
        self._began_s.pop(group_id, None)
