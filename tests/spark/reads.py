"""What tests of the source do again and again: options, rows, and queries that run to their end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headpond.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StreamingQuery

QUERY_S_MAX = 120


def options_of(broker: Broker, topic: str | None = None, **more: str) -> dict[str, str]:
    subscribed = {} if topic is None else {"subscribe": topic}
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, **subscribed, **more}


def batch(spark: SparkSession, given: dict[str, str], schema: str | None = None) -> DataFrame:
    reader = spark.read.format("headpond").options(**given)
    return (reader if schema is None else reader.schema(schema)).load()


def stream(spark: SparkSession, given: dict[str, str]) -> DataFrame:
    return spark.readStream.format("headpond").options(**given).load()


def values(rows: list[Row]) -> list[str]:
    return sorted(bytes(row["value"]).decode() for row in rows)


class Running:
    """A query whose rows are kept, batch by batch."""

    def __init__(self, frame: DataFrame, checkpoint: Path, **trigger: Any) -> None:
        self.batches: dict[int, list[Row]] = {}
        writer = frame.writeStream.foreachBatch(self._keep).option("checkpointLocation", str(checkpoint))
        self.query: StreamingQuery = writer.trigger(**trigger).start()

    def _keep(self, frame: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = frame.collect()

    @property
    def rows(self) -> list[Row]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]


def run_to_end(frame: DataFrame, checkpoint: Path, **trigger: Any) -> list[Row]:
    """All that there is when the query starts; raises what the query fails with."""
    running = Running(frame, checkpoint, **(trigger or {"availableNow": True}))
    assert running.query.awaitTermination(QUERY_S_MAX), "the query did not end"
    return running.rows
