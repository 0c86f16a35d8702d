"""L2: no exception reaches the loop or ends a task, no task outlives its host's stop, no alarm is logged.

``troubles`` is empty. Exempt: nothing; whoever records them leaves out what a fault has to cause.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.words import at
from simulation.history import History


def check(history: History) -> Iterator[str]:
    for trouble in history.troubles:
        yield f"{trouble.host} at {at(trouble.at_s)}: {trouble.what}"
