"""The indexes of a segment: their entries, and whether these agree with the batches.

An entry of ``.index`` points to the start of a batch; its offset is the last one of that batch, or of a later one (a
follower and the cleaner append several batches at once and note one entry). An entry of ``.timeindex`` names a batch
and its largest timestamp. Kafka sets space for an active segment's index aside: zeros at the end are no entries.

Checks go along with the walk over the batches, in their order, so that a segment of any size needs no memory.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from headpond.cli.log.batches import Batch
from headpond.storage.producers.txn_index import ENTRY_BYTES as TXN_ENTRY_BYTES
from headpond.storage.producers.txn_index import AbortedTxn, decode_prefix

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


class OffsetEntry(NamedTuple):
    offset: int
    position: int


class TimeEntry(NamedTuple):
    timestamp: int
    offset: int


def offset_entries(data: bytes, base_offset: int) -> tuple[list[OffsetEntry], str]:
    """(the entries, what is wrong with them among themselves or nothing)."""
    entries: list[OffsetEntry] = []
    for relative_offset, position in OFFSET_ENTRY.iter_unpack(_used(data, OFFSET_ENTRY.size)):
        entry = OffsetEntry(base_offset + relative_offset, position)
        if entries and (entry.offset <= entries[-1].offset or position <= entries[-1].position):
            return entries, f"entry {len(entries)} (offset {entry.offset}, position {position}) does not follow"
        entries.append(entry)
    return entries, _odd_size(data, OFFSET_ENTRY.size)


def time_entries(data: bytes, base_offset: int) -> tuple[list[TimeEntry], str]:
    entries: list[TimeEntry] = []
    for timestamp, relative_offset in TIME_ENTRY.iter_unpack(_used(data, TIME_ENTRY.size)):
        entry = TimeEntry(timestamp, base_offset + relative_offset)
        if entries and (timestamp <= entries[-1].timestamp or entry.offset < entries[-1].offset):
            return entries, f"entry {len(entries)} (timestamp {timestamp}, offset {entry.offset}) does not follow"
        entries.append(entry)
    return entries, _odd_size(data, TIME_ENTRY.size)


def txn_entries(data: bytes) -> tuple[list[AbortedTxn], str]:
    entries = decode_prefix(data)
    if len(entries) < len(data) // TXN_ENTRY_BYTES:
        return entries, f"entry {len(entries)} does not follow, or has a version that nobody knows"
    return entries, _odd_size(data, TXN_ENTRY_BYTES)


def _whole(data: bytes, entry_bytes: int) -> bytes:
    return data[: len(data) - len(data) % entry_bytes]


def _used(data: bytes, entry_bytes: int) -> bytes:
    """Without the zeros at the end, rounded up to whole entries."""
    used = len(data.rstrip(b"\0"))
    return _whole(data[: -(-used // entry_bytes) * entry_bytes], entry_bytes)


def _odd_size(data: bytes, entry_bytes: int) -> str:
    odd = len(data) % entry_bytes
    return f"{odd} bytes at the end are no entry" if odd else ""


class IndexCheck:
    """Feed every batch in order, then ask for what was never found."""

    def __init__(self, offsets: list[OffsetEntry], times: list[TimeEntry]) -> None:
        self._offsets = iter(offsets)
        self._times = iter(times)
        self._offset_entry = next(self._offsets, None)
        self._time_entry = next(self._times, None)
        self._awaited: list[OffsetEntry] = []  # their batch was met, their offset lies further on
        self.offset_faults: list[str] = []
        self.time_faults: list[str] = []

    def batch(self, batch: Batch) -> None:
        last_offset = batch.header.last_offset
        while (entry := self._offset_entry) is not None and entry.position <= batch.position:
            if entry.position != batch.position:
                self.offset_faults.append(f"{_said(entry)}: no batch starts there")
            elif entry.offset < batch.header.base_offset:
                self.offset_faults.append(f"{_said(entry)}: the batch there begins at {batch.header.base_offset}")
            else:
                self._awaited.append(entry)
            self._offset_entry = next(self._offsets, None)
        for entry in [each for each in self._awaited if each.offset <= last_offset]:
            self._awaited.remove(entry)
            if entry.offset != last_offset:
                self.offset_faults.append(f"{_said(entry)}: no batch ends with that offset")
        while (time := self._time_entry) is not None and time.offset <= last_offset:
            if time.offset < batch.header.base_offset:
                self.time_faults.append(f"no batch holds offset {time.offset} (timestamp {time.timestamp})")
            elif time.timestamp != batch.header.max_timestamp:
                self.time_faults.append(
                    f"offset {time.offset} has timestamp {time.timestamp}, its batch {batch.header.max_timestamp}"
                )
            self._time_entry = next(self._times, None)

    def finish(self) -> None:
        """The segment ends here."""
        left = [*self._awaited, *([self._offset_entry] if self._offset_entry else []), *self._offsets]
        self.offset_faults += [f"{_said(entry)}: behind the end of the segment" for entry in left]
        times = [*([self._time_entry] if self._time_entry else []), *self._times]
        self.time_faults += [f"offset {time.offset} lies behind the end of the segment" for time in times]


def _said(entry: OffsetEntry) -> str:
    return f"the entry for offset {entry.offset} points to position {entry.position}"
