"""L1: when the faults are over, everything comes about in time.

Nothing is left in ``unconverged`` when the time for healing is over. Exempt: nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.words import at
from simulation.history import History


def check(history: History) -> Iterator[str]:
    for what in history.unconverged:
        yield f"faults ended at {at(history.healed_s)}, and yet: {what}"
