"""What Spark tells of a query's batches, added up: rows in and out, rates, lag, time, state."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

OBSERVED, ROWS = "headpond", "rows"
"""Where a progress has the number of rows that went to the sink: an observed metric of ours."""


@dataclass(slots=True)
class Figures:
    """Of one query since it was started."""

    name: str
    group: str
    held: int = -1
    """The last batch that the target held before: its rows, when it comes again, are not written again."""
    batches: int = 0
    rows_read: int = 0
    rows_written: int = 0
    input_rows_per_s: float = 0.0
    processed_rows_per_s: float = 0.0
    batch_ms: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    lag: int | None = None
    watermark: str | None = None
    _last: tuple[int, str] = field(default=(-1, ""), repr=False)

    def look(self, query: StreamingQuery) -> bool:
        """Whether there is news. Batches that came between two looks are caught up with."""
        latest = query.lastProgress
        if latest is None:
            return False
        newest = plain(latest)
        if _mark(newest) == self._last:
            return False
        missed = newest["batchId"] > self._last[0] + 1
        for one in [plain(each) for each in query.recentProgress] if missed else [newest]:
            if _mark(one) > self._last:
                self.add(one)
        return True

    def add(self, progress: dict[str, Any]) -> None:
        """One progress of Spark's; the same batch is told of again when nothing comes after it."""
        if progress["batchId"] > self._last[0]:
            self.batches += 1
        self._last = _mark(progress)
        self.rows_read += _total(progress, "numInputRows")
        if progress["batchId"] > self.held:
            self.rows_written += _observed((progress.get("observedMetrics") or {}).get(OBSERVED))
        self.input_rows_per_s = _number(_total(progress, "inputRowsPerSecond"))
        self.processed_rows_per_s = _number(_total(progress, "processedRowsPerSecond"))
        self.batch_ms = int(
            progress.get("batchDuration") or (progress.get("durationMs") or {}).get("triggerExecution", 0)
        )
        operators = progress.get("stateOperators") or []
        self.state_rows = sum(one.get("numRowsTotal") or 0 for one in operators)
        self.state_bytes = sum(one.get("memoryUsedBytes") or 0 for one in operators)
        self.watermark = (progress.get("eventTime") or {}).get("watermark", self.watermark)
        self.lag = lag_of(progress["sources"])

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "group": self.group,
            "batches": self.batches,
            "rows_read": self.rows_read,
            "rows_written": self.rows_written,
            "input_rows_per_s": round(self.input_rows_per_s, 1),
            "processed_rows_per_s": round(self.processed_rows_per_s, 1),
            "batch_ms": self.batch_ms,
            "state_rows": self.state_rows,
            "state_bytes": self.state_bytes,
            "lag": self.lag,
            "watermark": self.watermark,
        }


def plain(progress: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(progress.json) if hasattr(progress, "json") else dict(progress)
    return found


def lag_of(sources: list[dict[str, Any]]) -> int | None:
    """Records between the end of the batch and the ends of the partitions; None where no source says."""
    behind: int | None = None
    for source in sources:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        for topic, partitions in latest.items():
            for number, offset in (partitions or {}).items():
                done = end.get(topic, {}).get(number)
                if isinstance(offset, int) and isinstance(done, int):
                    behind = (behind or 0) + max(0, offset - done)
    return behind


def _offsets(value: Any) -> dict[str, dict[str, int]]:
    found = json.loads(value) if isinstance(value, str) else value
    return {name: parts for name, parts in found.items() if isinstance(parts, dict)} if isinstance(found, dict) else {}


def _mark(progress: dict[str, Any]) -> tuple[int, str]:
    return progress["batchId"], progress["timestamp"]


def _observed(row: Any) -> int:
    """A row as {name: value}; from a Spark Connect server as {"values": [value], "schema": ...}, or without names."""
    if isinstance(row, dict):
        row = row[ROWS] if ROWS in row else row.get("values")
    while isinstance(row, list | tuple):
        row = row[0] if row else None
    return row or 0


def _total(progress: dict[str, Any], name: str) -> Any:
    """Over all sources; what a Spark Connect server sends leaves the sum to us."""
    found = progress.get(name)
    return sum(source.get(name) or 0 for source in progress["sources"]) if found is None else found


def _number(value: Any) -> float:
    """Spark says NaN and Infinity of batches that took no time."""
    return float(value) if isinstance(value, int | float) and value == value and abs(value) != float("inf") else 0.0
