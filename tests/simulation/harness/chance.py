"""``ports.Random`` that says the same in every run."""

from __future__ import annotations

import random


class SeededRandom:
    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def random_int(self, below: int) -> int:
        return self._random.randrange(below)
