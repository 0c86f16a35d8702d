"""What Spark carries from the driver to a task."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.datasource import InputPartition

from headpond import __version__
from headpond.spark.reading.offsets import Offsets
from headpond.spark.reading.options import SourceOptions
from headpond.spark.reading.planning import OffsetRange, split


class RangePartition(InputPartition):
    """A range of offsets, the topic it belongs to, and who planned it. Spark pickles it."""

    def __init__(self, wanted: OffsetRange, topic_id: bytes | None) -> None:
        super().__init__(None)
        self.wanted = wanted
        self.topic_id = topic_id
        self.planned_by = __version__

    def __repr__(self) -> str:
        return f"RangePartition({self.wanted.tp}, {self.wanted.from_offset}..{self.wanted.end_offset})"


def partitions_for(ranges: Iterable[OffsetRange], end: Offsets, options: SourceOptions) -> list[InputPartition]:
    parts = split(
        list(ranges),
        partitions_min=options.partitions_min,
        records_per_partition_max=options.records_per_partition_max,
    )
    return [RangePartition(one, end.topic_ids.get(one.tp.topic)) for one in parts]
