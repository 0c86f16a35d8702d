"""Finds one record by time inside one batch: the last step of ListOffsets, after the time index and the headers.

Timestamps within a batch need not ascend: a producer sets them as it likes. Hence every record is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.ports import Buffer
from penstock.protocol.records.reader import read_records


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


def first_at_or_after(batch: Buffer, timestamp: int, *, from_offset: int = 0) -> TimestampOffset | None:
    """The first record at ``from_offset`` or later that is as late as ``timestamp``. Raises ``CorruptBatch``."""
    for record in read_records(batch):
        if record.timestamp >= timestamp and record.offset >= from_offset:
            return TimestampOffset(record.timestamp, record.offset)
    return None


def latest(batch: Buffer) -> TimestampOffset | None:
    """The first of the records with the highest timestamp; None for a batch without records. Raises ``CorruptBatch``.

    Under append time all records have the same timestamp: the first one is the answer, as Kafka gives it.
    """
    found: TimestampOffset | None = None
    for record in read_records(batch):
        if found is None or record.timestamp > found.timestamp:
            found = TimestampOffset(record.timestamp, record.offset)
    return found
