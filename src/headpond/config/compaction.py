"""What compaction obeys on this broker; what a topic says about it is in ``LogConfig``."""

from __future__ import annotations

import msgspec


class CompactionSettings(msgspec.Struct, frozen=True):
    is_enabled: bool = True
    threads: int = 1  # logs that are compacted at a time, each by a process of its own
    dedupe_buffer_bytes: int = 134_217_728  # memory for keys, over all of them
    load_factor: float = 0.9  # how much of it is used
    io_buffer_bytes: int = 524_288
    bytes_per_s_max: float = 1.7976931348623157e308  # read and written, over all of them
    backoff_ms: int = 15_000
