"""The segments of one log in order of offsets, found by bisect."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from headpond.model import invariant
from headpond.storage.log.segment import Segment


class Segments:
    __slots__ = ("_segments", "base_offsets")

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self.base_offsets: list[int] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, slot: int) -> Segment:
        return self._segments[slot]

    def add(self, segment: Segment) -> None:
        invariant(not self._segments or self.base_offsets[-1] < segment.base_offset, "segments out of order", segment)
        self._segments.append(segment)
        self.base_offsets.append(segment.base_offset)

    def holding(self, offset: int) -> Segment:
        """The segment that ``offset`` falls into; the first one for offsets before it."""
        return self._segments[max(0, bisect_right(self.base_offsets, offset) - 1)]

    def after(self, segment: Segment) -> Segment | None:
        slot = bisect_right(self.base_offsets, segment.base_offset)
        return self._segments[slot] if slot < len(self._segments) else None

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """``new`` takes the place of its neighbours ``old``."""
        slot = self._segments.index(old[0])
        invariant(self._segments[slot : slot + len(old)] == [*old], "the replaced segments are not neighbours", new)
        # A new list, and not this one changed: somebody may be iterating over it.
        self._segments = [*self._segments[:slot], new, *self._segments[slot + len(old) :]]
        self.base_offsets = [segment.base_offset for segment in self._segments]

    def remove(self, segments: Iterable[Segment]) -> None:
        gone = set(map(id, segments))
        self._segments = [segment for segment in self._segments if id(segment) not in gone]
        self.base_offsets = [segment.base_offset for segment in self._segments]
