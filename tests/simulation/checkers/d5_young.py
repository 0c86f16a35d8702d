"""D5: retention by time removes no record that is younger than ``retention.ms``, by the broker's clock.

Whenever the log start is seen to have moved, each acknowledged record that it has passed has a timestamp that is older
than the shortest ``retention.ms`` that the topic may have had, by the latest that the broker's clock has told so far.

Exempt   what a DeleteRecords that did not certainly fail may have removed
         topics with ``retention.bytes``, topics that may have been deleted, topics with the broker's own timestamps
Looks are ``LOOKS_APART_MS`` apart, or a little more: so much younger a record may be.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from simulation.checkers.evidence.facts import succeeded
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import at, sender, shown
from simulation.history import History, OffsetsSeen, Place, Send

LOOKS_APART_MS = 1_000


def check(history: History) -> Iterator[str]:
    policies = Policies(history)
    sends: dict[tuple[str, int], list[Send]] = defaultdict(list)
    for send in succeeded(history, Send):
        if send.offset >= 0 and policies.retention_ms_min(send.topic) is not None:
            sends[send.topic, send.partition].append(send)
    for each in sends.values():
        each.sort(key=lambda send: send.offset)
    starts: dict[Place, int] = {}
    latest_ms = -1
    for look in history.offsets_seen:
        latest_ms = max(latest_ms, look.wall_ms)
        before = starts.get(look.place, 0)
        if look.log_start_offset > before:
            starts[look.place] = look.log_start_offset
            yield from _passed(look, before, sends[look.place.topic, look.place.partition], policies, latest_ms)


def _passed(look: OffsetsSeen, before: int, sends: list[Send], policies: Policies, latest_ms: int) -> Iterator[str]:
    topic, partition = look.place.topic, look.place.partition
    retention_ms = policies.retention_ms_min(topic)
    if retention_ms is None or policies.was_ever_deleted(topic):
        return
    begin = bisect_left(sends, max(before, policies.records_deleted_to(topic, partition)), key=lambda send: send.offset)
    for send in sends[begin : bisect_left(sends, look.log_start_offset, key=lambda send: send.offset)]:
        age_ms = latest_ms - send.timestamp_ms
        if send.timestamp_ms >= 0 and age_ms + LOOKS_APART_MS < retention_ms:
            yield (
                f"{shown(send.value)} ({sender(send)}) at {look.place} offset {send.offset} was removed by "
                f"{at(look.at_s)}, when it was at most {age_ms} ms old, and retention.ms is {retention_ms}"
            )
