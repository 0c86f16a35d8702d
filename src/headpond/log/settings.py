"""The settings of a log, in the terms of ``headpond.log.open`` and as the storage takes them."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

from headpond.config.compaction import CompactionSettings
from headpond.config.log import LogConfig
from headpond.log.given import whole_number
from headpond.storage.log.offset_index import POSITION_MAX
from headpond.storage.manager import StorageConfig

Flush = Literal["ack", "interval", "os"]
FLUSH_INTERVAL_MS = 1_000
"""Of the mode "interval"."""
SEGMENT_BYTES_MIN = 1_024
REMOVE_AFTER_MS = 1_000
"""Files of segments that are gone. Readers keep theirs open; the delay only bundles the work."""


class LogSettings(NamedTuple):
    segment_bytes: int
    index_interval_bytes: int
    flush: Flush
    retention_ms: int | None
    retention_bytes: int | None

    def check(self) -> None:
        """Raises ``TypeError``, ``ValueError``."""
        _within(self.segment_bytes, "segment_bytes", SEGMENT_BYTES_MIN, POSITION_MAX)
        _within(self.index_interval_bytes, "index_interval_bytes", 0, POSITION_MAX)
        if self.retention_ms is not None:
            _within(self.retention_ms, "retention_ms", 0, None)
        if self.retention_bytes is not None:
            _within(self.retention_bytes, "retention_bytes", 0, None)
        if self.flush not in get_args(Flush):
            raise ValueError(f"flush is {self.flush!r}: it should be one of {', '.join(get_args(Flush))}")

    def log_config(self) -> LogConfig:
        return LogConfig(
            segment_bytes=self.segment_bytes,
            index_interval_bytes=self.index_interval_bytes,
            retention_ms=self.retention_ms,
            retention_bytes=self.retention_bytes,
            file_delete_delay_ms=REMOVE_AFTER_MS,
        )

    def storage_config(self) -> StorageConfig:
        return StorageConfig(
            flush=self.flush,
            flush_interval_ms=FLUSH_INTERVAL_MS,
            compaction=CompactionSettings(is_enabled=False),  # only when it is asked for
        )


def _within(given: object, name: str, smallest: int, largest: int | None) -> None:
    number = whole_number(given, name)
    if not smallest <= number <= (math.inf if largest is None else largest):
        limits = f"at least {smallest}" if largest is None else f"{smallest} to {largest}"
        raise ValueError(f"{name} is {number}: it should be {limits}")
