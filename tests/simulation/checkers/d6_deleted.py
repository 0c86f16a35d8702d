"""D6: records that were deleted on request never come back.

From the moment at which a DeleteRecords was acknowledged with a low watermark, the partition's log start is never below
it: whenever it is looked at from inside, in the end, and in what is read.

Exempt   topics that may have been deleted meanwhile: made anew, they begin at 0
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.facts import succeeded
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import at, span
from simulation.history import AdminChange, History, Poll


def check(history: History) -> Iterator[str]:
    policies = Policies(history)
    for change in succeeded(history, AdminChange):
        is_told = change.kind == "delete-records" and change.low_watermark >= 0
        if is_told and not policies.may_be_deleted_after(change.topic, change.invoked_s):
            yield from _come_back(history, change)


def _come_back(history: History, change: AdminChange) -> Iterator[str]:
    where, start = (change.topic, change.partition), change.low_watermark
    told_s = change.ended_s if change.ended_s is not None else change.invoked_s
    deleted = f"though {change.process} was told that all below {start} is deleted ({span(change)})"
    for look in history.offsets_seen:
        if look.at_s > told_s and (look.place.topic, look.place.partition) == where and look.log_start_offset < start:
            yield f"the log start of {look.place} is {look.log_start_offset} at {at(look.at_s)}, {deleted}"
            return
    for poll in succeeded(history, Poll):
        if poll.invoked_s > told_s and (poll.place.topic, poll.place.partition) == where:
            for seen in poll.records:
                if seen.offset < start:
                    yield f"{poll.place} offset {seen.offset} was read by {poll.process} ({span(poll)}), {deleted}"
                    return
    for place, log in history.final_logs.items():
        if (place.topic, place.partition) == where and log.log_start_offset < start:
            yield f"the log start of {place} is {log.log_start_offset} in the end, {deleted}"
