"""Which record is the latest of its key, for the dirty part of a log, within a given amount of memory.

Records are numbered in the order in which the dirty part is read. The second reading numbers them the same way, so
that the map answers for a whole batch at once, with a slice, and only batches of which some records stay are looked
into again.
"""

from __future__ import annotations

DEAD, ALIVE, TOMBSTONE = 0, 1, 4
LIVE_TOMBSTONE = ALIVE | TOMBSTONE

_ENTRY_BYTES = 176
"""What an entry costs besides the bytes of its key: two objects and its share of the table, also while that grows."""


class KeyMap:
    def __init__(self, size_bytes_max: int) -> None:
        self.size_bytes = 0
        self._size_bytes_max = size_bytes_max
        self._latest: dict[bytes | None, int] = {}  # by key: the number of its latest record
        self._marks = bytearray()
        self.keys = self._latest.keys()

    def __len__(self) -> int:
        return len(self._latest)

    @property
    def is_full(self) -> bool:
        return self.size_bytes >= self._size_bytes_max

    def add(self, keys: list[bytes | None], tombstones: list[int]) -> None:
        """The next batch of the dirty part, as ``read_keys`` found it."""
        if not keys:
            return
        latest, marks = self._latest, self._marks
        first = len(marks)
        known = len(latest)
        marks.extend(bytes(len(keys)))
        for number in tombstones:
            marks[first + number] = TOMBSTONE
        latest.update(zip(keys, range(first, len(marks)), strict=True))
        latest.pop(None, None)  # no key: nobody can ask for it, and it goes
        new = len(latest) - known
        if new:
            key_bytes = sum(map(len, filter(None, keys))) // len(keys)
            self.size_bytes += new * (_ENTRY_BYTES + key_bytes)
        self.size_bytes += len(keys)

    def settle(self) -> None:
        """Everything is in: mark the records that are the latest of their keys."""
        marks = self._marks
        for number in self._latest.values():
            marks[number] |= ALIVE

    def verdicts(self, first: int, count: int) -> bytearray:
        """For ``count`` records from the one with number ``first``: DEAD, ALIVE, LIVE_TOMBSTONE, or TOMBSTONE, dead."""
        return self._marks[first : first + count]
