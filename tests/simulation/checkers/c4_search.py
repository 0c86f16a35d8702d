"""C4: a search by timestamp finds the first record, in the order of the log, that is as new or newer.

Judged against the final log, whose records were there at the time of the search if they lie before the offset that was
answered, or were acknowledged (acks=-1) before it was invoked:

- no record before the answered offset is as new; the one at that offset is, and has the timestamp that was told
- "none" (-1) is wrong if a record that is as new had been acknowledged. Markers count as records, as in Kafka

Exempt   what was removed since: a missing record can't convict; the answered offset may be gone by retention,
         DeleteRecords or compaction
         "none" under read_committed: the record may have lain above the last stable offset
         topics that were deleted; searches for special timestamps (below 0).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from simulation.checkers.evidence.facts import answered_s, succeeded
from simulation.checkers.evidence.places import Places
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import span
from simulation.history import FinalLog, History, Place, Search, Send


def check(history: History) -> Iterator[str]:
    searches = [each for each in succeeded(history, Search) if each.timestamp_ms >= 0]
    if not searches:
        return
    policies = Policies(history)
    timelines = {place: _Timeline(log) for place, log in history.final_logs.items()}
    acknowledged = _Acknowledged(history, Places(history, policies), timelines)
    for search in searches:
        timeline = timelines.get(search.place)
        if timeline is None:
            continue
        first = timeline.first(search.timestamp_ms)
        if search.offset < 0:
            timestamp_ms, offset = acknowledged.newest_before(search.place, search.invoked_s)
            if timestamp_ms >= search.timestamp_ms and search.isolation == "read_uncommitted":
                newer = f"offset {offset} with timestamp {timestamp_ms}"
                yield f"{_who(search)} and found nothing, though {newer} was acknowledged"
            continue
        if first is not None and first < search.offset:
            yield (
                f"{_who(search)} and was told offset {search.offset}, though offset {first} has timestamp "
                f"{timeline.timestamps[first]}"
            )
        yield from _itself(search, timeline, may_be_gone=search.place.topic in policies.compacted)


def _who(search: Search) -> str:
    return f"{search.process} ({span(search)}) searched {search.place} for timestamp {search.timestamp_ms}"


class _Timeline:
    def __init__(self, log: FinalLog) -> None:
        self.start, self.end = log.log_start_offset, log.high_watermark
        records = [seen for batch in log.fetched for seen in batch.records if seen.offset >= self.start]
        self.timestamps = {seen.offset: seen.timestamp_ms for seen in records}
        self.bare = {batch.base_offset for batch in log.fetched if batch.control and not batch.records}
        """Markers of whose timestamps nothing is known."""
        self._offsets = [seen.offset for seen in records]
        self._newest = list(accumulate((seen.timestamp_ms for seen in records), max))

    def first(self, timestamp_ms: int) -> int | None:
        slot = bisect_left(self._newest, timestamp_ms)
        return self._offsets[slot] if slot < len(self._offsets) else None


class _Acknowledged:
    """Per place, what was acknowledged by when, of what is there in the end."""

    def __init__(self, history: History, places: Places, timelines: dict[Place, _Timeline]) -> None:
        self._by_place: dict[Place, list[tuple[float, int, int]]] = {}
        for send in succeeded(history, Send):
            place = places.home(send)
            if send.acks != -1 or place is None or places.may_be_over(send):
                continue
            timestamp_ms = timelines[place].timestamps.get(send.offset)
            if timestamp_ms is not None:
                self._by_place.setdefault(place, []).append((answered_s(send), timestamp_ms, send.offset))
        self._newest: dict[Place, list[tuple[int, int]]] = {}
        for place, known in self._by_place.items():
            known.sort()
            self._newest[place] = list(accumulate(((ms, offset) for _, ms, offset in known), max))

    def newest_before(self, place: Place, moment_s: float) -> tuple[int, int]:
        """(timestamp, offset)"""
        slot = bisect_left(self._by_place.get(place, ()), (moment_s,)) - 1
        return self._newest[place][slot] if slot >= 0 else (-1, -1)


def _itself(search: Search, timeline: _Timeline, *, may_be_gone: bool) -> Iterator[str]:
    if search.offset < timeline.start or search.offset in timeline.bare:
        return
    found = timeline.timestamps.get(search.offset)
    if found is None:
        if not may_be_gone or search.offset >= timeline.end:
            yield f"{_who(search)} and was told offset {search.offset}, where no record is in the end"
    elif found < search.timestamp_ms or (0 <= search.found_timestamp_ms != found):
        yield (
            f"{_who(search)} and was told offset {search.offset} and timestamp {search.found_timestamp_ms}, "
            f"though the record there has timestamp {found}"
        )
