"""The ``.index`` file: where in the segment a batch lies, one entry per ``index.interval.bytes``.

An entry is (relative offset of the batch's *last* record i32, position i32), big-endian, both strictly increasing. In
memory it is two arrays, so that a lookup is one bisect in C. It is a hint and never the truth: whoever follows it
checks the batch header that it finds there, and a file that is missing or makes no sense is rebuilt from the log. A
crash may leave any part of the file: recovery believes only what lies below the recovery point.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import islice
from operator import lt

from headpond.ports import Buffer

ENTRY_BYTES = 8
RELATIVE_OFFSET_MAX = 2_147_483_647
POSITION_MAX = 2_147_483_647


class OffsetIndex:
    __slots__ = ("base_offset", "positions", "relative_offsets")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.relative_offsets = array("i")
        self.positions = array("i")

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def last_position(self) -> int:
        """Of the last entry; 0 when there is none: the segment's first batch."""
        return self.positions[-1] if self.positions else 0

    @property
    def last_offset(self) -> int:
        """Of the last entry, of which there has to be one."""
        return self.base_offset + self.relative_offsets[-1]

    def append(self, last_offset: int, position: int) -> None:
        self.relative_offsets.append(last_offset - self.base_offset)
        self.positions.append(position)

    def floor(self, offset: int) -> tuple[int, int | None]:
        """Where to start walking for ``offset``: a batch at or before the one that holds it; and the last offset of
        that batch as the index has it, None for the segment's first batch, which is not indexed."""
        slot = bisect_right(self.relative_offsets, offset - self.base_offset) - 1
        return (self.positions[slot], self.base_offset + self.relative_offsets[slot]) if slot >= 0 else (0, None)

    def position_near_end(self, from_position: int, from_offset: int) -> int:
        """Where to start walking for what lies behind both; the last entry when none does."""
        if from_position <= 0 and from_offset <= self.base_offset:
            return 0
        slot = max(
            bisect_left(self.positions, from_position),
            bisect_left(self.relative_offsets, from_offset - self.base_offset),
        )
        return self.positions[slot] if slot < len(self.positions) else self.last_position

    def whole_batch_before(self, position: int) -> int:
        """The start of an indexed batch that ends at or before ``position``; 0 when none is known."""
        # The entry before the last one at or below: its batch ends where a later one starts.
        slot = bisect_right(self.positions, position) - 2
        return self.positions[slot] if slot >= 0 else 0

    def truncate(self, end_offset: int) -> None:
        """Forget entries of batches that reach ``end_offset`` or beyond."""
        slot = bisect_left(self.relative_offsets, end_offset - self.base_offset)
        del self.relative_offsets[slot:]
        del self.positions[slot:]

    def truncate_positions(self, position: int) -> None:
        """Forget entries of batches that lie behind ``position``."""
        slot = bisect_right(self.positions, position)
        del self.relative_offsets[slot:]
        del self.positions[slot:]

    def pop(self) -> None:
        """Forget the last entry."""
        self.relative_offsets.pop()
        self.positions.pop()

    def copy(self) -> OffsetIndex:
        copied = OffsetIndex(self.base_offset)
        copied.relative_offsets, copied.positions = self.relative_offsets[:], self.positions[:]
        return copied

    def encode(self, from_entry: int = 0) -> bytes:
        both = array("i", bytes(4 * 2 * (len(self) - from_entry)))
        both[0::2] = self.relative_offsets[from_entry:]
        both[1::2] = self.positions[from_entry:]
        if sys.byteorder == "little":
            both.byteswap()
        return both.tobytes()

    @classmethod
    def decode_prefix(cls, base_offset: int, data: Buffer, *, size_bytes: int) -> OffsetIndex:
        """The entries up to the first that can't be right: what may be trusted at all."""
        both = array("i", bytes(memoryview(data)[: len(data) - len(data) % ENTRY_BYTES]))
        if sys.byteorder == "little":
            both.byteswap()
        index = cls(base_offset)
        index.relative_offsets, index.positions = both[0::2], both[1::2]
        count = min(_increasing(index.relative_offsets), _increasing(index.positions))
        if count and index.positions[0] <= 0:  # the first batch is never indexed: zeros of a preallocated file
            count = 0
        count = min(count, bisect_left(index.positions, size_bytes, 0, count))
        del index.relative_offsets[count:]
        del index.positions[count:]
        return index


def _increasing(numbers: array[int]) -> int:
    """How many numbers from the start are not negative and strictly increase."""
    if not numbers or numbers[0] < 0:
        return 0
    if all(map(lt, numbers, islice(numbers, 1, None))):
        return len(numbers)
    return next(slot for slot in range(1, len(numbers)) if numbers[slot] <= numbers[slot - 1])
