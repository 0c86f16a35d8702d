"""What read_committed readers were given."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from simulation.checkers.evidence.facts import answered_s, succeeded
from simulation.history import History, Place, Poll, Seen


class View(NamedTuple):
    place: Place
    reader: str
    ended_s: float
    records: tuple[Seen, ...]


def committed_views(history: History) -> Iterator[View]:
    for poll in succeeded(history, Poll):
        if poll.records and poll.isolation == "read_committed":
            yield View(poll.place, poll.process, answered_s(poll), poll.records)
    for place, log in history.final_logs.items():
        yield View(place, "the final read", inf, log.committed)
