"""The broker's log as a library: durable, ordered records in files, for one process and any number of threads.

    import headpond.log

    with headpond.log.open("orders") as log:
        offset = log.append(b"two apples", key=b"anna")     # durable when it returns
        for record in log.read(from_offset=offset):
            print(record.offset, record.key, record.value)

Segments, indexes, recovery and the files are the broker's: ``headpond log verify orders`` checks the folder, and
``headpond adopt --data-dir orders`` makes a topic of it.
"""

from __future__ import annotations

from headpond.log.batch import RawBatch
from headpond.log.compacting import Compacted
from headpond.log.engine import SegmentInfo
from headpond.log.errors import (
    CompactionFailed,
    CorruptRecord,
    KeyMissing,
    LogClosed,
    LogError,
    LogFailed,
    LogInUse,
    LogUnusable,
    NotAppended,
    OffsetOutOfRange,
    ReadFailed,
    RecordTooLarge,
)
from headpond.log.given import NewRecord
from headpond.log.log import Log
from headpond.log.opening import open
from headpond.protocol.records.record import Record

__all__ = [
    "Compacted",
    "CompactionFailed",
    "CorruptRecord",
    "KeyMissing",
    "Log",
    "LogClosed",
    "LogError",
    "LogFailed",
    "LogInUse",
    "LogUnusable",
    "NewRecord",
    "NotAppended",
    "OffsetOutOfRange",
    "RawBatch",
    "ReadFailed",
    "Record",
    "RecordTooLarge",
    "SegmentInfo",
    "open",
]
