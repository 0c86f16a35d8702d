"""Which segments may go: whole ones, from the oldest on, never beyond the high watermark. Pure.

    below the log start (DeleteRecords)     always
    size above retention.bytes              while the log stays at least that large without it
    age above retention.ms                  by the segment's largest timestamp, or by when it was last written to if its
                                            batches have none

The last two only where ``cleanup.policy`` has "delete". An active segment may go too (it is rolled first), unless it
is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headpond.config.log import LogConfig
from headpond.storage.log.segment import Segment


def doomed(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    log_start_offset: int,
    up_to_end_offset: int,
    now_ms: int,
    modified_ms: Mapping[Segment, int],
) -> int | Segment:
    """How many segments go; or the segment about which more has to be known before that can be said: its timestamps, or
    if they do not tell, when its file was last written to (``modified_ms``)."""
    excess_bytes = None
    if config.deletes and config.retention_bytes is not None:
        excess_bytes = sum(segment.size_bytes for segment in segments) - config.retention_bytes
    for count, segment in enumerate(segments):
        is_active = count == len(segments) - 1
        if segment.end_offset > up_to_end_offset or (is_active and segment.size_bytes == 0):
            return count
        goes = not is_active and segment.end_offset <= log_start_offset
        if not goes and excess_bytes is not None:
            goes = excess_bytes - segment.size_bytes >= 0
        if not goes and config.deletes and config.retention_ms is not None:
            if segment.max_timestamp is None:
                return segment
            newest_ms = segment.max_timestamp
            if newest_ms < 0 or segment.is_damaged:  # batches behind a damaged one may be younger than those before it
                if segment not in modified_ms:
                    return segment
                newest_ms = max(newest_ms, modified_ms[segment])
            goes = now_ms - newest_ms > config.retention_ms
        if not goes:
            return count
        if excess_bytes is not None:
            excess_bytes -= segment.size_bytes
    return len(segments)
