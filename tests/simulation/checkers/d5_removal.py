"""D5: only retention, DeleteRecords and compaction remove records, and only what they may.

- The log start moves only in topics with a retention of their own (``retention.ms``, ``retention.bytes``), or up to
  where DeleteRecords was asked to move it. It is never above the last stable offset or the high watermark.
- A record that was served (polled), and is not in the final log, lies below the log start or was removed by compaction,
  which keeps the last committed record of each key (``losses`` has the rules).

Exempt   a DeleteRecords or a change of configs with an unknown outcome counts as done
         topics that were deleted
The broker's default retention is taken for endless: a workload with old timestamps has to set ``retention.ms``.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.facts import data_at, sends_by_value, succeeded
from simulation.checkers.evidence.fates import Fates
from simulation.checkers.evidence.losses import Losses
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import record, span
from simulation.history import FinalLog, History, Place, Poll


def check(history: History) -> Iterator[str]:
    policies = Policies(history)
    for place, log in history.final_logs.items():
        yield from _log_start(place, log, policies)
    losses = Losses(history, policies, Fates(history))
    senders = sends_by_value(history)
    held = data_at(history)
    reported: set[tuple[Place, int]] = set()
    for poll in succeeded(history, Poll):
        if not poll.records or poll.place not in held:
            continue
        present = held[poll.place]
        for seen in poll.records:
            if seen.offset in present or (poll.place, seen.offset) in reported:
                continue
            send = senders.get(seen.value) if seen.value is not None else None
            transaction = send.transaction if send is not None else None
            if not losses.may_be_gone(poll.place, seen.offset, seen.key, seen.value, transaction):
                reported.add((poll.place, seen.offset))
                yield (
                    f"{record(seen)} was read at {poll.place} offset {seen.offset} by {poll.process} ({span(poll)}), "
                    "and is gone in the end, though nothing may have removed it"
                )


def _log_start(place: Place, log: FinalLog, policies: Policies) -> Iterator[str]:
    start = log.log_start_offset
    if start > policies.log_start_max(place.topic, place.partition):
        yield f"the log start of {place} is {start} in the end, though no retention or DeleteRecords allows it"
    if start > log.last_stable_offset or start > log.high_watermark:
        yield (
            f"the log start of {place} is {start} in the end, above its last stable offset "
            f"{log.last_stable_offset} or its high watermark {log.high_watermark}"
        )
