"""Which neighbouring segments are cleaned into one, so that cleaned segments do not stay small for ever. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headpond.protocol.records.header import HEADER_BYTES
from headpond.storage.compaction.job import SegmentToClean
from headpond.storage.log.offset_index import ENTRY_BYTES, POSITION_MAX, RELATIVE_OFFSET_MAX
from headpond.storage.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES


def group_segments(
    segments: Sequence[SegmentToClean], *, bytes_max: int, index_bytes_max: int, interval_bytes: int
) -> list[list[SegmentToClean]]:
    """Neighbours that together are no larger than one segment may be, before cleaning; nor its indexes after it."""
    bytes_max = min(bytes_max, POSITION_MAX)
    per_entry = max(interval_bytes, HEADER_BYTES)
    entry_bytes = max(ENTRY_BYTES, TIME_ENTRY_BYTES)
    bytes_max = min(bytes_max, max(0, index_bytes_max // entry_bytes - 1) * per_entry)
    grouped: list[list[SegmentToClean]] = []
    size_bytes = 0
    for segment in segments:
        group = grouped[-1] if grouped else None
        if (
            group is not None
            and size_bytes + segment.size_bytes <= bytes_max
            and segment.end_offset - 1 - group[0].base_offset <= RELATIVE_OFFSET_MAX
        ):
            group.append(segment)
            size_bytes += segment.size_bytes
        else:
            grouped.append([segment])
            size_bytes = segment.size_bytes
    return grouped
