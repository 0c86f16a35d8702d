"""Chance from the operating system: ids made from it are unique across machines and restarts."""

from __future__ import annotations

import os

from headpond.model import invariant


class SystemRandom:
    """``ports.Random`` of the machine."""

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def random_int(self, below: int) -> int:
        """Uniform: 64 bits more than needed make the remainder's bias smaller than 2**-64."""
        invariant(below > 0, "an empty range has no numbers", below)
        return int.from_bytes(os.urandom(below.bit_length() // 8 + 9), "big") % below
