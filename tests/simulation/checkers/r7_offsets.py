"""R7: log start <= last stable offset <= high watermark <= log end, and the high watermark never goes back.

The order holds whenever the four are looked at from inside, in every answer to a poll, and in the end. Within one life
of the broker the high watermark of a partition, as seen from inside, never decreases. Over all lives, the final one is
not below any that was seen from inside or told to a reader: it follows the disk (``headpond.flush=ack``).

Exempt   an early moment of a new life: a partition that is being opened may show less than before
         offsets that an answer did not name (-1)
         topics that were deleted: they have no final log.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.facts import succeeded
from simulation.checkers.evidence.words import at, span
from simulation.history import History, OffsetsSeen, Place, Poll

NAMES = "log start, last stable offset, high watermark (and log end)"


def check(history: History) -> Iterator[str]:
    highest: dict[Place, tuple[int, str]] = {}
    yield from _inside(history, highest)
    for poll in succeeded(history, Poll):
        offsets: tuple[int, ...] = poll.log_start_offset, poll.last_stable_offset, poll.high_watermark
        if not _are_in_order(offsets):
            yield f"{poll.place} has {NAMES} {offsets} as told to {poll.process} ({span(poll)})"
        if poll.high_watermark > highest.get(poll.place, (-1, ""))[0]:
            highest[poll.place] = poll.high_watermark, f"was told to {poll.process} ({span(poll)})"
    for place, log in history.final_logs.items():
        offsets = log.log_start_offset, log.last_stable_offset, log.high_watermark, log.log_end_offset
        if not _are_in_order(offsets):
            yield f"{place} has {NAMES} {offsets} in the end"
        seen, how = highest.get(place, (-1, ""))
        if seen > log.high_watermark:
            yield f"{place} has the high watermark {log.high_watermark} in the end, though {seen} {how}"


def _inside(history: History, highest: dict[Place, tuple[int, str]]) -> Iterator[str]:
    latest: dict[tuple[Place, int], OffsetsSeen] = {}
    for seen in history.offsets_seen:
        offsets = seen.log_start_offset, seen.last_stable_offset, seen.high_watermark, seen.log_end_offset
        if not _are_in_order(offsets):
            yield f"{seen.place} has {NAMES} {offsets} at {at(seen.at_s)}"
        before = latest.get((seen.place, seen.life))
        if before is not None and seen.high_watermark < before.high_watermark:
            yield (
                f"{seen.place} had the high watermark {before.high_watermark} at {at(before.at_s)}, and "
                f"{seen.high_watermark} at {at(seen.at_s)}, in the same life of the broker"
            )
        latest[seen.place, seen.life] = seen
        if seen.high_watermark > highest.get(seen.place, (-1, ""))[0]:
            highest[seen.place] = seen.high_watermark, f"was seen at {at(seen.at_s)}"


def _are_in_order(offsets: tuple[int, ...]) -> bool:
    known = [offset for offset in offsets if offset >= 0]
    return known == sorted(known)
