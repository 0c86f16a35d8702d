"""P4: a send that failed is never read.

The value of a send that ended ``failed`` is in no poll and in no final log, as read and on disk.

Exempt   unknown outcomes: a timeout, or a refusal of a retry whose first attempt may have been written, is unknown
         tombstones, which can't be told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from simulation.checkers.evidence.facts import data_of, of_kind, succeeded
from simulation.checkers.evidence.words import sender, shown, span
from simulation.history import History, Place, Poll, Seen, Send


def check(history: History) -> Iterator[str]:
    failed = {
        send.value: send for send in of_kind(history, Send) if send.outcome == "failed" and send.value is not None
    }
    if not failed:
        return
    for place, reader, records in _readings(history):
        for seen in records:
            if seen.value in failed:
                send = failed.pop(seen.value)
                yield (
                    f"{shown(seen.value)} failed with error {send.error} ({sender(send)}), and is at {place} "
                    f"offset {seen.offset} for {_name(reader)}"
                )


def _readings(history: History) -> Iterator[tuple[Place, str | Poll, Iterable[Seen]]]:
    for poll in succeeded(history, Poll):
        if poll.records:
            yield poll.place, poll, poll.records
    for place, log in history.final_logs.items():
        yield place, "the final read", data_of(log.fetched)
        yield place, "a walk over the log files", data_of(log.on_disk)


def _name(reader: str | Poll) -> str:
    return reader if isinstance(reader, str) else f"{reader.process} ({span(reader)})"
