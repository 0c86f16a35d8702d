"""How dirty a log is, and whether it is time to clean it. Pure; the rules are Kafka's.

never cleaned   the active segment · what is not below the limit (the last stable offset, and the recovery point on
                disk) · from the first dirty segment on that has a record younger than min.compaction.lag.ms
worth it        the dirty part makes up more than min.cleanable.dirty.ratio of what is not excluded
due anyway      a dirty segment began longer ago than max.compaction.lag.ms
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headpond.config.log import LogConfig
from headpond.storage.log.segment import Segment

_NO_LAG_LIMIT_MS = 9_223_372_036_854_775_807


class Dirt(NamedTuple):
    segments: list[Segment]  # all that a cleaning would go through, the clean ones too
    first_dirty_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def ratio(self) -> float:
        total_bytes = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total_bytes if total_bytes else 0.0

    def is_worth_it(self, config: LogConfig) -> bool:
        return self.dirty_bytes > 0 and (self.is_overdue or self.ratio > config.min_cleanable_dirty_ratio)


class Unknown(NamedTuple):
    """A segment's timestamps have to be read before the question can be answered."""

    segment: Segment


def find_dirt(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    cleaned_end_offset: int | None,
    log_start_offset: int,
    log_end_offset: int,
    limit_offset: int,
    now_ms: int,
) -> Dirt | Unknown:
    """``segments``: all of the log's, the active one last. ``cleaned_end_offset``: where the last cleaning ended, None
    if there was none; a value that can't be (after a truncation, from a damaged file) means that all is dirty."""
    first_dirty_offset = log_start_offset
    if cleaned_end_offset is not None and log_start_offset <= cleaned_end_offset <= log_end_offset:
        first_dirty_offset = cleaned_end_offset
    chosen: list[Segment] = []
    clean_bytes = dirty_bytes = 0
    oldest_ms = _NO_LAG_LIMIT_MS
    for segment in segments[:-1]:
        if segment.end_offset <= log_start_offset:
            continue  # retention removes it
        if segment.end_offset > limit_offset:
            break
        is_dirty = segment.end_offset > first_dirty_offset
        if is_dirty and config.min_compaction_lag_ms > 0:
            if segment.max_timestamp is None:
                return Unknown(segment)
            if _largest(segment) > now_ms - config.min_compaction_lag_ms:
                break
        if is_dirty and config.max_compaction_lag_ms < _NO_LAG_LIMIT_MS and segment.size_bytes:
            if segment.first_timestamp is None:
                return Unknown(segment)
            if segment.first_timestamp > 0:
                oldest_ms = min(oldest_ms, segment.first_timestamp)
        chosen.append(segment)
        if segment.base_offset < first_dirty_offset:
            clean_bytes += segment.size_bytes
        if is_dirty:
            dirty_bytes += segment.size_bytes
    is_overdue = oldest_ms < now_ms - config.max_compaction_lag_ms
    return Dirt(chosen, first_dirty_offset, clean_bytes, dirty_bytes, is_overdue)


def _largest(segment: Segment) -> int:
    """The largest timestamp, or when the segment was made if its batches have none."""
    largest = segment.max_timestamp if segment.max_timestamp is not None else -1
    return largest if largest >= 0 else segment.created_ms
