"""``spark.read.format("headpond")``: from a start to an end, as of the moment when Spark plans the read.

Spark plans a DataFrame once: a second action on it reads the same offsets again. Read anew to see what came since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from headpond.spark.kafka.link import Link
from headpond.spark.reading.cluster import bounds_of_batch
from headpond.spark.reading.options import SourceOptions
from headpond.spark.reading.planning import ranges_between
from headpond.spark.reading.range_reader import read_range
from headpond.spark.source.ranges import RangePartition, partitions_for
from headpond.spark.worker import begin_task

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(DataSourceReader):
    """No ``pushFilters``: Spark refuses every read of a source that has it, unless it is told otherwise."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> list[InputPartition]:
        with Link(self._options.client) as link:
            start, end = link.run(lambda client: bounds_of_batch(client, self._options))
        return partitions_for(ranges_between(start, end), end, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, RangePartition):  # what Spark makes of an empty list
            return iter(())
        begin_task(partition.planned_by)
        return read_range(self._options, partition.wanted, partition.topic_id, self._columns)
