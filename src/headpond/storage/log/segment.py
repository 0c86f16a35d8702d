"""The ``.log`` file: record batches, one behind the other, and what memory knows about it.

The last segment of a log is the active one: it grows, its indexes are kept in memory and written out by checkpoints.
The others are finished; their files are opened and their indexes loaded when a reader first needs them. The loop owns
every ``Segment``: workers get its file and plain numbers.

A crash may leave anything behind the last ``sync``: part of a batch, zeros, garbage. Recovery finds the end by the
CRCs.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from headpond.config.log import LogConfig
from headpond.ports import Buffer, File
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC
from headpond.storage.log.offset_index import ENTRY_BYTES as INDEX_ENTRY_BYTES
from headpond.storage.log.offset_index import POSITION_MAX, RELATIVE_OFFSET_MAX, OffsetIndex
from headpond.storage.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from headpond.storage.log.time_index import NO_TIMESTAMP, TimeIndex

if TYPE_CHECKING:
    from headpond.storage.recovery.scan import ScannedSegment

SPAN_BYTES = 27
_SPAN = struct.Struct(">qi4xb6xi")
_BATCH_LENGTH_MIN = HEADER_BYTES - LOG_OVERHEAD_BYTES
# A batch's offsets are not known before it is stamped: leave room for as many as a sane batch can hold.
_RELATIVE_OFFSET_ROLL = RELATIVE_OFFSET_MAX - (1 << 24)


class SegmentLimits(NamedTuple):
    """When a new segment is due, in the terms of ``has_room``."""

    bytes_max: int
    index_entries_max: int
    time_entries_max: int
    age_ms_max: int

    @classmethod
    def of(cls, config: LogConfig) -> SegmentLimits:
        return cls(
            min(config.segment_bytes, POSITION_MAX),
            config.segment_index_bytes // INDEX_ENTRY_BYTES,
            config.segment_index_bytes // TIME_ENTRY_BYTES - 1,  # one more is written when the segment is finished
            min(config.segment_ms, config.max_compaction_lag_ms) if config.compacts else config.segment_ms,
        )


class Segment:
    __slots__ = (
        "base_offset",
        "bytes_since_entry",
        "created_ms",
        "end_offset",
        "file",
        "first_timestamp",
        "former_files",
        "index",
        "index_entries_written",
        "index_files_are_exact",
        "is_damaged",
        "is_gone",
        "jitter_ms",
        "max_timestamp",
        "max_timestamp_offset",
        "pins",
        "size_bytes",
        "time_entries_written",
        "time_index",
        "txn_entries_written",
        "unsynced",
    )

    def __init__(self, base_offset: int, *, created_ms: int, jitter_ms: int = 0) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset  # exclusive
        self.size_bytes = 0
        self.file: File | None = None
        self.former_files: tuple[File, ...] = ()  # replaced, and perhaps still used by a worker
        self.index: OffsetIndex | None = None
        self.time_index: TimeIndex | None = None
        self.max_timestamp: int | None = None  # None: not read yet
        self.max_timestamp_offset = base_offset  # the last offset of the batch that holds it
        self.first_timestamp: int | None = None  # of the first batch; None while there is none
        self.created_ms = created_ms  # when it was made; once it is finished, when it was finished
        self.jitter_ms = jitter_ms
        self.bytes_since_entry = 0
        self.index_entries_written = 0  # its file has them; -1: the file is to be replaced as a whole
        self.time_entries_written = 0
        self.index_files_are_exact = False  # they exist, and hold these entries and nothing else, durably
        self.is_damaged = False  # a batch in it can't be read: what lies behind it is not known
        self.txn_entries_written = 0  # no file while there is none
        self.unsynced = False
        self.pins = 0  # workers that use the file now: it must not be closed under them
        self.is_gone = False  # no longer part of the log

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}..{self.end_offset}, {self.size_bytes} bytes)"

    def start(self, file: File) -> None:
        """Become an empty active segment."""
        self.file = file
        self.index = OffsetIndex(self.base_offset)
        self.time_index = TimeIndex(self.base_offset)
        self.max_timestamp = NO_TIMESTAMP

    def appended(self, size_bytes: int, last_offset: int, max_timestamp: int, interval_bytes: int) -> None:
        """A batch was written at the end."""
        position = self.size_bytes
        if position == 0:
            self.first_timestamp = max_timestamp
        if self.max_timestamp is None or max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_entry > interval_bytes:
            assert self.index is not None and self.time_index is not None
            self.index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.bytes_since_entry = 0
        self.bytes_since_entry += size_bytes
        self.size_bytes = position + size_bytes
        self.end_offset = last_offset + 1

    def note_index_files(self, scanned: ScannedSegment) -> None:
        """What a scan has compared of its index files."""
        self.index_entries_written = scanned.index_entries_on_disk
        self.time_entries_written = scanned.time_entries_on_disk
        self.index_files_are_exact = scanned.is_on_disk

    def has_unwritten_entries(self) -> bool:
        """Whether its index files are to be written, as far as is known: indexes that were let go were."""
        if self.index is None or self.time_index is None:
            return False
        entries = len(self.index), len(self.time_index)
        return not self.index_files_are_exact or entries != (self.index_entries_written, self.time_entries_written)

    def finish_time_index(self) -> None:
        """The last entry, which tells retention how old the segment is."""
        if self.time_index is not None and self.max_timestamp is not None:
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)

    def pin(self) -> None:
        self.pins += 1

    def unpin(self) -> None:
        self.pins -= 1
        if not self.pins and (self.former_files or self.is_gone):
            self._close_former()
            if self.is_gone:
                self.unload()

    def replace_file(self, file: File) -> None:
        """The same file, opened anew. The old descriptor is closed as soon as no worker can be using it."""
        if self.file is not None:
            self.former_files += (self.file,)
        self.file = file
        if not self.pins:
            self._close_former()

    def _close_former(self) -> None:
        former, self.former_files = self.former_files, ()
        for file in former:
            file.close()

    def unload(self) -> None:
        """Close the file and let go of the indexes; a finished segment can be loaded again."""
        if self.file is not None:
            self.file.close()
        self.file = self.index = self.time_index = None

    def has_room(self, size_bytes: int, max_timestamp: int, now_ms: int, limits: SegmentLimits) -> bool:
        """Whether a batch belongs into this segment; if not, a new one is due. Its age is counted from the first
        batch's timestamp if it has one, else from the segment's creation."""
        own_bytes = self.size_bytes
        if own_bytes == 0:
            return True
        bytes_max, index_entries_max, time_entries_max, age_ms_max = limits
        if (
            own_bytes + size_bytes > bytes_max
            or self.end_offset - self.base_offset > _RELATIVE_OFFSET_ROLL
            or len(self.index.positions) >= index_entries_max  # type: ignore[union-attr]
            or len(self.time_index.timestamps) >= time_entries_max  # type: ignore[union-attr]
        ):
            return False
        first_timestamp = self.first_timestamp
        if first_timestamp is not None and first_timestamp >= 0:
            return max_timestamp - first_timestamp <= age_ms_max - self.jitter_ms
        return now_ms - self.created_ms <= age_ms_max - self.jitter_ms


def read_span(data: Buffer, at: int) -> tuple[int, int, int]:
    """(base offset, last offset, size in bytes) of the batch at ``at``; ``CorruptBatch`` if no batch can start so."""
    base_offset, batch_length, magic, last_offset_delta = _SPAN.unpack_from(data, at)
    if magic != MAGIC or batch_length < _BATCH_LENGTH_MIN or last_offset_delta < 0 or base_offset < 0:
        raise CorruptBatch(
            f"no batch starts like this: base offset {base_offset}, length {batch_length}, magic {magic}, "
            f"last offset delta {last_offset_delta}"
        )
    return base_offset, base_offset + last_offset_delta, LOG_OVERHEAD_BYTES + batch_length
