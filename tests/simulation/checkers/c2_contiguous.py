"""C2: successive polls of a reader are contiguous over what it may see, and never go back.

Within a session (no seek, no new assignment) each poll asks for the position that the one before left. Its records have
growing offsets, from its position on and below the next one. No record that the final log has for this isolation level
is left out between the two positions: what is there in the end was there then, and below what the reader might see.

Exempt   polls that failed, or whose outcome is unknown
         records that are not there in the end (removed since, or of an aborted transaction under read_committed)
         topics that were deleted: they have no final log.
A reader that has to jump (its offset was out of range) begins a new session.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from simulation.checkers.evidence.facts import data_of, succeeded
from simulation.checkers.evidence.words import span
from simulation.history import History, Isolation, Place, Poll


def check(history: History) -> Iterator[str]:
    visible: dict[tuple[Place, Isolation], list[int]] = {}
    for place, log in history.final_logs.items():
        visible[place, "read_committed"] = [seen.offset for seen in log.committed]
        visible[place, "read_uncommitted"] = [seen.offset for seen in data_of(log.fetched)]
    before: dict[tuple[str, Place, int], Poll] = {}
    for poll in succeeded(history, Poll):
        session = poll.process, poll.place, poll.session
        last = before.get(session)
        if last is not None and last.next_position != poll.position:
            yield (
                f"{_who(poll)} asked for offset {poll.position}, though its last poll ({span(last)}) had left it at "
                f"{last.next_position}"
            )
        before[session] = poll
        yield from _inside(poll)
        yield from _left_out(poll, visible.get((poll.place, poll.isolation), []))


def _who(poll: Poll) -> str:
    return f"{poll.process} ({poll.isolation}, {poll.place}, {span(poll)})"


def _inside(poll: Poll) -> Iterator[str]:
    at_least = poll.position
    for seen in poll.records:
        if seen.offset < at_least:
            yield (
                f"{_who(poll)} asked for offset {poll.position}, and got offset {seen.offset} where {at_least} or "
                "more was due"
            )
            return
        at_least = seen.offset + 1
    if poll.next_position < at_least:
        yield f"{_who(poll)} was led to position {poll.next_position}, where {at_least} or more was due"


def _left_out(poll: Poll, visible: list[int]) -> Iterator[str]:
    start, end = bisect_left(visible, poll.position), bisect_left(visible, poll.next_position)
    if end - start <= 0:
        return
    given = {seen.offset for seen in poll.records}
    missing = [offset for offset in visible[start:end] if offset not in given]
    if missing:
        yield (
            f"{_who(poll)} went from offset {poll.position} to {poll.next_position} without the records at "
            f"{missing[:10]}, which the log has in the end"
        )
