"""A correct broker in a few lines, and random clients of it: a source of good histories for the checkers' own tests.

Every operation takes effect at one moment between its invocation and its end, or at any later one if its outcome is
unknown, or never. Operations of different clients overlap freely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from simulation.checkers.proof.model_log import Log
from simulation.history import GroupState, History, Place

PLACES = [Place("t", "id-1", partition) for partition in range(2)]
SLOW_S = 0.5


class Run:
    def __init__(self, seed: int, operations: int) -> None:
        self.rng = Random(seed)
        self.logs = {place: Log(place) for place in PLACES}
        self.history = History()
        self.compacts = self.rng.random() < 0.5
        self.length_s = operations / 20
        self.offsets: dict[int, tuple[int, int]] = {}
        """Partition -> (position of the commit, offset)."""
        self.pending: dict[str, dict[int, tuple[int, int]]] = {}
        self.numbers = count()
        self.positions = count(1)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self.now_s = 0.0

    def finish(self) -> History:
        while self._events:
            self.now_s, _, event = heappop(self._events)
            event()
        self.history.operations.sort(key=lambda each: each.invoked_s)
        self.history.final_logs = {place: log.final(compacts=self.compacts) for place, log in self.logs.items()}
        offsets = tuple(("t", partition, offset) for partition, (_, offset) in sorted(self.offsets.items()))
        self.history.groups_after_restart = {"g": GroupState("g", "Empty", (), offsets)}
        self.history.groups_before_restart = self.history.groups_after_restart
        return self.history

    # --- time

    def at(self, moment_s: float, event: Callable[[], None]) -> None:
        heappush(self._events, (moment_s, next(self.numbers), event))

    def spawn(self, client: Iterator[float]) -> None:
        """A client yields how long it waits."""

        def step() -> None:
            for wait_s in client:
                self.at(self.now_s + wait_s, step)
                return

        self.at(self.rng.random(), step)

    def ask(
        self, operation: Any, effect: Callable[[], None], *, may_fail: bool = True, not_before_s: float = 0
    ) -> float:
        """When it takes effect, if it does. The client goes on at its own pace."""
        self.history.operations.append(operation)
        effect_s = max(self.now_s + self.rng.random() * SLOW_S, not_before_s + 0.0001)
        fortune = self.rng.random()
        if may_fail and fortune < 0.1:
            operation.outcome, operation.ended_s = "failed", effect_s
            return effect_s
        if may_fail and fortune < 0.25:
            operation.ended_s = self.rng.choice([None, self.now_s + 0.1])
            if fortune < 0.2:
                self.at(effect_s, effect)
            return effect_s

        def succeed() -> None:
            effect()
            operation.ended_s = self.now_s + self.rng.random() * SLOW_S
            if operation.outcome != "failed":
                operation.outcome = "ok"

        self.at(effect_s, succeed)
        return effect_s

    def asked(self, who: int) -> dict[str, Any]:
        return {"process": f"client-{who}", "invoked_s": self.now_s}
