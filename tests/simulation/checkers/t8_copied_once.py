"""T8: records that a group copies in transactions, together with its offsets, are copied exactly once.

Judged in the end, by what read_committed shows of the copies (``copies`` tells what each is a copy of):

- no record is copied twice
- what is copied lies before the group's committed offset, and has the value of the original
- of what read_committed shows of a source before the group's committed offset, everything is copied

Exempt   originals that are gone: their value, and whether they were copied
         the last rule for groups whose copies go to a topic that was ever compacted or has lost its first records
         groups that are not among the final states: nobody knows how far they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from simulation.checkers.evidence.copies import Original, copied_value, original_of
from simulation.checkers.evidence.facts import of_kind
from simulation.checkers.evidence.policies import Policies
from simulation.checkers.evidence.words import shown
from simulation.history import History, Place, Seen, Send

Source = tuple[str, str, int]
"""Group, topic, partition."""


class _Copy(NamedTuple):
    place: Place
    seen: Seen

    def __str__(self) -> str:
        return f"{self.place} offset {self.seen.offset} ({shown(self.seen.value)})"


def check(history: History) -> Iterator[str]:
    copies: dict[Source, dict[int, _Copy]] = defaultdict(dict)
    for place, log in history.final_logs.items():
        for seen in log.committed:
            original = original_of(seen.key)
            if original is None:
                continue
            copy = _Copy(place, seen)
            first = copies[original[:3]].setdefault(original.offset, copy)
            if first != copy:
                yield f"{original} was copied twice by {original.group}: to {first} and to {copy}"
    committed = _committed_offsets(history)
    places = {(place.topic, place.partition): place for place in history.final_logs}
    complete = _complete_groups(history)
    for source in sorted({*copies, *(each for each in committed if each[0] in complete)}):
        group, topic, partition = source
        source_place = places.get((topic, partition))
        if source_place is None or group not in history.groups_after_restart:
            continue
        originals = {seen.offset: seen for seen in history.final_logs[source_place].committed}
        next_offset = committed.get(source, 0)
        yield from _wrong(source, copies[source], originals, next_offset)
        if group in complete:
            missing = [offset for offset in originals if offset < next_offset and offset not in copies[source]]
            if missing:
                yield f"{group} has come to offset {next_offset} of {source_place}, and there is no copy of " + (
                    f"{missing[:10]}"
                )


def _wrong(source: Source, copies: dict[int, _Copy], originals: dict[int, Seen], next_offset: int) -> Iterator[str]:
    for offset, copy in sorted(copies.items()):
        original = Original(*source, offset)
        if offset >= next_offset:
            yield f"{original} was copied to {copy}, though {original.group} has only come to offset {next_offset}"
        seen = originals.get(offset)
        if seen is not None and copied_value(copy.seen.value or b"") != (seen.value or b""):
            yield f"{original}, which is {shown(seen.value)}, was copied to {copy}"


def _committed_offsets(history: History) -> dict[Source, int]:
    return {
        (group, topic, partition): offset
        for group, state in history.groups_after_restart.items()
        for topic, partition, offset in state.offsets
    }


def _complete_groups(history: History) -> set[str]:
    """Those whose copies can't have been removed."""
    policies = Policies(history)
    starts: dict[str, int] = defaultdict(int)
    for place, log in history.final_logs.items():
        starts[place.topic] = max(starts[place.topic], log.log_start_offset)
    groups: dict[str, bool] = {}
    for send in of_kind(history, Send):
        original = original_of(send.key)
        if original is not None:
            is_whole = send.topic in starts and send.topic not in policies.compacted and not starts[send.topic]
            groups[original.group] = groups.get(original.group, True) and is_whole
    return {group for group, is_whole in groups.items() if is_whole}
