"""The ``.index`` and ``.timeindex`` files of one segment, read back. Blocking.

Both are hints. They are believed up to the last offset entry that leads to the batch it names, and only if the time
index knows timestamps as large as those of the batches looked at on the way; everything behind that entry is read from
the batches. Files that end too early cost a longer scan, and change no answer.

A crash during a checkpoint may leave one file ahead of the other. What such a checkpoint wrote last may lie below the
recovery point, because a growing segment's files are allowed to lag (``INDEX_LAG_BYTES``):

    file            |======== both durable =========|-- perhaps in one only --|
    segment         |-------------------------------|----- INDEX_LAG_BYTES ---| recovery point     after a crash,
                                                    ^ believed up to here                          ``trusted_part``

That holds because checkpoints never take away entries that are right: they add to a file, cut off what is not theirs
behind such entries, or replace the file as a whole (``segment_files.save``).
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from headpond.ports import File, FileSystem
from headpond.protocol.records.errors import CorruptBatch
from headpond.protocol.records.header import HEADER_BYTES, BatchHeader, read_header
from headpond.storage.folder import names
from headpond.storage.log.offset_index import ENTRY_BYTES as INDEX_ENTRY_BYTES
from headpond.storage.log.offset_index import OffsetIndex
from headpond.storage.log.segment import read_span
from headpond.storage.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from headpond.storage.log.time_index import TimeIndex
from headpond.storage.recovery.scan import ScannedSegment, scan

INDEX_LAG_BYTES = 64 * 1024
"""The growing segment's indexes are written when they lack the entries of this much: recovery makes the last ones anew
from the log. With hundreds of busy partitions their files would be opened and closed all the time, and each such call
stops the loop for a moment. Recovery relies on it: a folder that was written with a larger value is not safe with a
smaller one."""


class IndexFiles(NamedTuple):
    """The two files of a segment: the entries up to the first that can't be right, and how many bytes there are."""

    offset_index: OffsetIndex
    time_index: TimeIndex
    index_bytes: int
    time_bytes: int
    time_is_damaged: bool  # something follows its entries that is no entry, and is not the rest of a preallocated file

    def compare(self, scanned: ScannedSegment) -> None:
        """Note in ``scanned`` how much of what it found is in the files."""
        entries, times = self.offset_index, self.time_index
        scanned.index_entries_on_disk = min(
            _same(entries.positions, scanned.index.positions),
            _same(entries.relative_offsets, scanned.index.relative_offsets),
        )
        scanned.time_entries_on_disk = min(
            _same(times.timestamps, scanned.time_index.timestamps),
            _same(times.relative_offsets, scanned.time_index.relative_offsets),
        )
        scanned.is_on_disk = (self.index_bytes, self.time_bytes) == (
            scanned.index_entries_on_disk * INDEX_ENTRY_BYTES,
            scanned.time_entries_on_disk * TIME_ENTRY_BYTES,
        )


def read_index_files(fs: FileSystem, path: str, base_offset: int, size_bytes: int) -> IndexFiles | None:
    """None: one is missing. ``size_bytes``: of the segment."""
    try:
        index_data = fs.read_file(f"{path}/{names.file_name(base_offset, names.INDEX)}")
        time_data = fs.read_file(f"{path}/{names.file_name(base_offset, names.TIME_INDEX)}")
    except FileNotFoundError:
        return None
    index = OffsetIndex.decode_prefix(base_offset, index_data, size_bytes=size_bytes)
    time_index = TimeIndex.decode_prefix(base_offset, time_data)
    rest = memoryview(time_data)[len(time_index) * TIME_ENTRY_BYTES :]
    return IndexFiles(index, time_index, len(index_data), len(time_data), any(rest))


def load_indexes(
    fs: FileSystem, path: str, file: File, base_offset: int, size_bytes: int, end_offset: int, interval_bytes: int
) -> ScannedSegment:
    """A finished segment's: from its files, and from the batches behind the last entry; if the files are of no use,
    from all batches."""
    files = read_index_files(fs, path, base_offset, size_bytes)
    scanned: ScannedSegment | None = None
    if files is not None and _are_whole(files, end_offset):
        scanned = resume(file, size_bytes, files.offset_index.copy(), files.time_index.copy())
    if files is None or scanned is None:
        return rebuild_indexes(file, base_offset, size_bytes, interval_bytes)
    scan(file, size_bytes, scanned, None, interval_bytes=interval_bytes, verify_from_offset=1 << 63)
    if scanned.fault is not None:
        _take_timestamps(scanned, files.time_index)
    scanned.finish()
    files.compare(scanned)
    return scanned


def rebuild_indexes(file: File, base_offset: int, size_bytes: int, interval_bytes: int) -> ScannedSegment:
    """A finished segment's, from its batches."""
    scanned = ScannedSegment.anew(base_offset)
    scan(file, size_bytes, scanned, None, interval_bytes=interval_bytes, verify_from_offset=1 << 63)
    scanned.finish()
    return scanned


def trusted_part(
    files: IndexFiles, file: File, size_bytes: int, *, scan_from: int, recovery_point: int, lag_bytes: int
) -> ScannedSegment | None:
    """What the files vouch for, so that a scan may go on behind it; at most up to ``scan_from``. None: they lie.
    ``lag_bytes``: so much below the recovery point the files may differ."""
    index, time_index = files.offset_index.copy(), files.time_index.copy()
    index.truncate(recovery_point)
    end_position = _drop_astray(file, size_bytes, index)
    index.truncate_positions(end_position - lag_bytes)
    index.truncate(scan_from)
    if len(index) and files.time_is_damaged and time_index.last[1] <= index.last_offset:
        return None  # it may lack entries that belong to those of the offset index
    return resume(file, size_bytes, index, time_index)


def resume(file: File, size_bytes: int, index: OffsetIndex, time_index: TimeIndex) -> ScannedSegment | None:
    """What is known about a segment up to the last of these index entries, where a scan may go on; None if they lie.
    Takes both over."""
    if not len(index):
        return ScannedSegment.empty(index.base_offset)
    first, last = _header_at(file, 0, size_bytes), _led_to(file, size_bytes, index)
    if first is None or last is None:
        return None
    time_index.truncate(index.last_offset + 1)
    if any(each.max_timestamp > time_index.last[0] and each.count for each in (first, last)):
        return None
    time_index.truncate(last.last_offset + 1)  # where we go on
    timestamp, timestamp_offset = time_index.last
    return ScannedSegment(
        index.base_offset,
        index,
        time_index,
        position=index.last_position,
        next_offset=last.base_offset,
        first_timestamp=first.max_timestamp,
        max_timestamp=timestamp,
        max_timestamp_offset=timestamp_offset,
        # More than any interval: the first batch scanned is the one of the last entry, which resets the count.
        bytes_since_entry=1 << 31,
        index_entries_on_disk=len(index),
        time_entries_on_disk=len(time_index),
    )


def _are_whole(files: IndexFiles, end_offset: int) -> bool:
    """Whether every entry may be one of a finished segment that ends there."""
    index, time_index = files.offset_index, files.time_index
    if len(index) * INDEX_ENTRY_BYTES != files.index_bytes or len(time_index) * TIME_ENTRY_BYTES != files.time_bytes:
        return False
    return not len(index) or index.last_offset < end_offset


def _drop_astray(file: File, size_bytes: int, index: OffsetIndex) -> int:
    """Forget the last entries that do not lead to the batch they name: a torn write may look like entries. Returns
    where the batch of the last one ends."""
    while len(index):
        header = _led_to(file, size_bytes, index)
        if header is not None:
            return index.last_position + header.size_bytes
        index.pop()
    return 0


def _led_to(file: File, size_bytes: int, index: OffsetIndex) -> BatchHeader | None:
    """The batch that the last entry leads to; None if it can't be that one. An older Kafka names the last of several
    batches that were appended together, and leads to the first."""
    header = _header_at(file, index.last_position, size_bytes)
    return header if header is not None and header.last_offset <= index.last_offset else None


def _header_at(file: File, position: int, size_bytes: int) -> BatchHeader | None:
    head = file.read(position, min(HEADER_BYTES, size_bytes - position))
    if len(head) < HEADER_BYTES:
        return None
    try:
        read_span(head, 0)
    except CorruptBatch:
        return None
    return read_header(head)


def _take_timestamps(scanned: ScannedSegment, time_index: TimeIndex) -> None:
    """Batches behind a damaged one could not be read: what the file knows of them still counts."""
    timestamp, offset = time_index.last
    if timestamp > scanned.max_timestamp:
        scanned.max_timestamp, scanned.max_timestamp_offset = timestamp, offset


def _same(some: array[int], others: array[int]) -> int:
    """How many numbers from the start are the same."""
    count = min(len(some), len(others))
    if some[:count] == others[:count]:
        return count
    return next(slot for slot in range(count) if some[slot] != others[slot])
