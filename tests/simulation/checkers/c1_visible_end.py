"""C1: a reader is given nothing above what it may see.

Each record of a poll, and the position behind it, lies below (at most at) the end that the same answer named: the high
watermark for read_uncommitted, the last stable offset for read_committed.

Exempt   polls that failed, and answers that did not name that end (-1).
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from simulation.checkers.evidence.facts import succeeded
from simulation.checkers.evidence.words import record, span
from simulation.history import History, Poll


def check(history: History) -> Iterator[str]:
    for poll in succeeded(history, Poll):
        if poll.isolation == "read_committed":
            end_offset, name = poll.last_stable_offset, "last stable offset"
        else:
            end_offset, name = poll.high_watermark, "high watermark"
        if end_offset < 0 or not poll.records:
            continue
        highest = max(poll.records, key=attrgetter("offset"))
        if highest.offset >= end_offset:
            yield (
                f"{poll.process} ({span(poll)}) was given {record(highest)} at {poll.place} offset "
                f"{highest.offset}, and a {name} of {end_offset}"
            )
        elif poll.next_position > end_offset:
            yield (
                f"{poll.process} ({span(poll)}) was led to {poll.place} offset {poll.next_position}, above the "
                f"{name} {end_offset}"
            )
