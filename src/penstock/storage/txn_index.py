"""The `<base offset>.txnindex` file: which transactions that end in this segment were aborted. Kafka's format.

    version i16 = 0 · producer id i64 · first offset i64 · last offset i64 (the marker's) · last stable offset i64

A read_committed consumer is told of those that overlap what it reads, and leaves their records out. Memory holds the
entries of all segments; checkpoints write them, and are done before the recovery point moves. The truth is in the log
(its abort markers): after a crash the files are believed below the point from which recovery replays the log, and are
made right from there on, so that no entry outlives the marker that it stands for. Most logs have no such file, and pay
nothing.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from penstock.ports import Buffer

VERSION = 0
_ENTRY = struct.Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode(entries: Iterable[AbortedTxn]) -> bytes:
    return b"".join(_ENTRY.pack(VERSION, *entry) for entry in entries)


def ending_in(entries: Sequence[AbortedTxn], base_offset: int, end_offset: int) -> range:
    """The numbers of those that end between these offsets, in a segment say. ``entries`` are in the order of their
    ends."""
    first = bisect_left(entries, base_offset, key=_last_offset_of)
    return range(first, bisect_left(entries, end_offset, lo=first, key=_last_offset_of))


def decode_prefix(data: Buffer) -> list[AbortedTxn]:
    """The entries up to the first that can't be one: half an entry, another version, an end that goes back."""
    found: list[AbortedTxn] = []
    for start in range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES):
        version, *fields = _ENTRY.unpack_from(data, start)
        entry = AbortedTxn(*fields)
        follows = not found or entry.last_offset > found[-1].last_offset
        if version != VERSION or not 0 <= entry.first_offset <= entry.last_offset or not follows:
            break
        found.append(entry)
    return found


def overlapping(
    entries: Sequence[AbortedTxn], *, from_offset: int, up_to_end_offset: int
) -> tuple[tuple[int, int], ...]:
    """(producer id, first offset) of those with records in the range, as a Fetch response lists them. ``entries`` are
    in the order of their ends."""
    first = bisect_left(entries, from_offset, key=_last_offset_of)
    return tuple(
        (entry.producer_id, entry.first_offset)
        for entry in islice(entries, first, None)
        if entry.first_offset < up_to_end_offset
    )


def _last_offset_of(entry: AbortedTxn) -> int:
    return entry.last_offset
