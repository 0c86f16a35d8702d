"""How long and with which chance a test of chaos runs. `make chaos` makes it longer; a failed run prints its seed.

A seed repeats the decisions of a run, not the moments at which the processes were hit.
"""

from __future__ import annotations

import os
import random
import time

SECONDS = "HEADPOND_CHAOS_SECONDS"
SEED = "HEADPOND_CHAOS_SEED"


class Chaos:
    """The chance of one run, and when it has lasted long enough."""

    def __init__(self, short_s: float) -> None:
        """``short_s``: what it takes in the ordinary run."""
        self.seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(1_000_000))
        self.random = random.Random(self.seed)
        self.duration_s = float(os.environ.get(SECONDS) or short_s)
        self._end = time.monotonic() + self.duration_s
        print(f"{SEED}={self.seed} {SECONDS}={self.duration_s:g}")

    @property
    def is_on(self) -> bool:
        return time.monotonic() < self._end

    def pause(self, least_s: float, most_s: float) -> None:
        """Until the next fault. It decides what the fault hits, never what is right."""
        time.sleep(self.random.uniform(least_s, most_s))
