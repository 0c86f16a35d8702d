"""A stand-in for Spark's engine, without a JVM: it asks a stream reader what Spark asks, in Spark's order."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headpond.spark.reading.options import parse_options
from headpond.spark.source.stream import StreamReader

if TYPE_CHECKING:
    import pyarrow as pa

    from headpond.spark.reading.offsets import Document

COLUMNS = ("value", "partition", "offset")


class Engine:
    """What Spark does with a reader: its log of offsets is a list, and a text is compared with a text."""

    def __init__(
        self, given: dict[str, str], log: list[Document] | None = None, columns: Sequence[str] = COLUMNS
    ) -> None:
        self.reader = StreamReader(parse_options(given, is_stream=True), columns)
        self.log = [] if log is None else log

    @property
    def start(self) -> Document:
        return json.loads(json.dumps(self.log[-1] if self.log else self.reader.initialOffset()))

    def batch(self, limit: Any = None) -> list[str] | None:
        """The values of one more batch; None when there is none."""
        start = self.start
        end = self.plan(limit)
        return None if end is None else self.values(start, end)

    def plan(self, limit: Any = None) -> Document | None:
        """Writes the end of one more batch to the log; None when there is none."""
        start = self.start
        end = self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit())
        if json.dumps(end) == json.dumps(start):
            return None
        self.log.append(end)
        return end

    def values(self, start: Document, end: Document) -> list[str]:
        return [value.decode() for rows in self.rows(start, end) for value in rows.column("value").to_pylist()]

    def rows(self, start: Document, end: Document) -> Iterator[pa.RecordBatch]:
        """Those of a batch, as its tasks give them to Spark."""
        partitions = self.reader.partitions(start, json.loads(json.dumps(end)))
        task = pickle.loads(pickle.dumps(self.reader))
        for partition in pickle.loads(pickle.dumps(partitions)):
            yield from task.read(partition)

    def to_end(self) -> list[str]:
        found: list[str] = []
        while (more := self.batch()) is not None:
            found += more
        return found


def offsets_of(document: Document) -> dict[str, dict[str, int]]:
    return {name: parts for name, parts in document.items() if "#" not in name}
