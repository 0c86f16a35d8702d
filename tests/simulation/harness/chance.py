"""``ports.Random`` that says the same in every run, and independent streams of chance from one seed."""

from __future__ import annotations

import random


def stream(seed: int, name: str) -> random.Random:
    """Chance for one purpose. Streams do not disturb each other: leaving out a fault changes no other one."""
    return random.Random(f"{seed}/{name}")


class SeededRandom:
    def __init__(self, seed: int | str = 0) -> None:
        self._random = random.Random(seed)

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def random_int(self, below: int) -> int:
        return self._random.randrange(below)
