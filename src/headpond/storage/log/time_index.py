"""The ``.timeindex`` file: the largest timestamp so far, and the batch that holds it.

An entry is (timestamp i64, relative offset of that batch's last record i32). One is added with an offset index entry,
and one when the segment is finished, each time only if the timestamp has grown; so timestamps strictly increase. A
hint, like the offset index: a crash may leave any part of it.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right

from headpond.ports import Buffer

ENTRY_BYTES = 12
NO_TIMESTAMP = -1
_ENTRY = struct.Struct(">qi")


class TimeIndex:
    __slots__ = ("base_offset", "relative_offsets", "timestamps")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.relative_offsets = array("i")

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) when there is none."""
        if not self.timestamps:
            return NO_TIMESTAMP, self.base_offset
        return self.timestamps[-1], self.base_offset + self.relative_offsets[-1]

    def maybe_append(self, timestamp: int, offset: int) -> None:
        if timestamp > (self.timestamps[-1] if self.timestamps else NO_TIMESTAMP):
            self.timestamps.append(timestamp)
            self.relative_offsets.append(offset - self.base_offset)

    def floor_offset(self, timestamp: int) -> int:
        """Every batch before the one at this offset has only smaller timestamps than ``timestamp``."""
        slot = bisect_right(self.timestamps, timestamp) - 1
        return self.base_offset + self.relative_offsets[slot] if slot >= 0 else self.base_offset

    def truncate(self, end_offset: int) -> None:
        slot = bisect_right(self.relative_offsets, end_offset - self.base_offset - 1)
        del self.timestamps[slot:]
        del self.relative_offsets[slot:]

    def copy(self) -> TimeIndex:
        copied = TimeIndex(self.base_offset)
        copied.timestamps, copied.relative_offsets = self.timestamps[:], self.relative_offsets[:]
        return copied

    def encode(self, from_entry: int = 0) -> bytes:
        return b"".join(map(_ENTRY.pack, self.timestamps[from_entry:], self.relative_offsets[from_entry:]))

    @classmethod
    def decode_prefix(cls, base_offset: int, data: Buffer) -> TimeIndex:
        """The entries up to the first that can't be right."""
        index = cls(base_offset)
        last_timestamp, last_offset = NO_TIMESTAMP, 0
        whole = memoryview(data)[: len(data) - len(data) % ENTRY_BYTES]
        for timestamp, relative_offset in _ENTRY.iter_unpack(whole):
            if timestamp <= last_timestamp or relative_offset < last_offset:
                break
            last_timestamp, last_offset = timestamp, relative_offset
            index.timestamps.append(timestamp)
            index.relative_offsets.append(relative_offset)
        return index
