"""Leader epochs of one log: at which offset each of them began (KIP-101).

    epoch   3        5           6
    log     |0 ..... |40 ....... |97 ... log end

Truncation goes by these boundaries and never by a high watermark. The truth is in the batches, each stamped with its
epoch: the file (``leader-epoch-checkpoint``) spares recovery from reading those below the recovery point.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from headpond.storage.folder.checkpoint_files import CorruptCheckpoint, decode_lines, encode_lines

NO_EPOCH = -1
NO_END_OFFSET = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """Entries with strictly increasing epochs and start offsets. ``version`` grows with each change."""

    __slots__ = ("_entries", "latest_epoch", "version")

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self._entries: list[EpochEntry] = []
        self.latest_epoch = NO_EPOCH
        self.version = 0
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Batches from ``start_offset`` on are of ``epoch``. Entries that contradict it (an epoch that led but wrote
        nothing, or what a newer leader overrules) go."""
        entries = self._entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        self._changed()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(largest epoch <= asked, where it ends), KIP-279; (-1, -1) when the asked one is unknown and newer than
        all."""
        if epoch == NO_EPOCH or epoch > self.latest_epoch:
            return NO_EPOCH, NO_END_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        above = bisect_right(self._entries, epoch, key=_epoch_of)
        end_offset = self._entries[above].start_offset
        return (self._entries[above - 1].epoch if above else epoch), end_offset

    def epoch_for(self, offset: int) -> int:
        """The epoch of the batch at ``offset``; -1 when the log begins later than that."""
        slot = bisect_right(self._entries, offset, key=_start_of) - 1
        return self._entries[slot].epoch if slot >= 0 else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """The log ends there now: forget epochs that began at or after it."""
        count = len(self._entries)
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        if len(self._entries) != count:
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """The log begins there now: the epoch that it falls into begins there too, older ones are forgotten."""
        slot = bisect_right(self._entries, start_offset, key=_start_of) - 1
        if slot < 0 or (slot == 0 and self._entries[0].start_offset == start_offset):
            return
        self._entries[: slot + 1] = [EpochEntry(self._entries[slot].epoch, start_offset)]
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        self.latest_epoch = self._entries[-1].epoch if self._entries else NO_EPOCH

    def encode(self) -> bytes:
        return encode_lines(f"{entry.epoch} {entry.start_offset}" for entry in self._entries)

    @classmethod
    def decode(cls, data: bytes) -> LeaderEpochs:
        """What the file says, or ``CorruptCheckpoint``."""
        try:
            pairs = [row.split() for row in decode_lines(data)]
            return cls(EpochEntry(int(epoch), int(start_offset)) for epoch, start_offset in pairs)
        except ValueError:
            raise CorruptCheckpoint(f"malformed leader epochs {data[:100]!r}") from None


def _epoch_of(entry: EpochEntry) -> int:
    return entry.epoch


def _start_of(entry: EpochEntry) -> int:
    return entry.start_offset
