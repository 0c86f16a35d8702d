"""What the storage of one data folder counts as it works, for the metrics. Touched on the loop only.

Compaction keeps figures of its own (``CompactionStats``)."""

from __future__ import annotations

from headpond.telemetry.metrics import SIZES, Histogram


class StorageMeters:
    __slots__ = (
        "commit_logs",
        "commit_records",
        "fdatasync",
        "retention_bytes",
        "retention_runs",
        "retention_segments",
        "syncfs",
    )

    def __init__(self) -> None:
        self.fdatasync = Histogram()  # of one job of the group commit: one file, or a few
        self.syncfs = Histogram()
        self.commit_logs = Histogram(SIZES)
        self.commit_records = Histogram(SIZES)
        self.retention_runs = 0
        self.retention_segments = 0
        self.retention_bytes = 0
