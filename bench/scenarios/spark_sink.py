"""Spark, from a topic to a topic: the source, and the sink exactly once, staging and commit included.

Needs the extra `spark`; without it the scenario is left out. One session (`local[2]`) for
all runs, in this process.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from ..harness import Bench, prime_page_cache
from ..measure import MB_PER_S, Bar, Sample, Samples, Scenario
from ..tools import LoadFailed
from .spark_common import (
    M_RECORDS_PER_S,
    PARTITIONS,
    broker_for_spark,
    failing_without_a_figure,
    filled_topic,
    local_session,
    rates,
)

SIZE_BYTES, SIZE_BYTES_QUICK = 800_000_000, 300_000_000
MICRO_BATCH = 2_000_000
"""Records in a micro-batch: what some seconds of a busy topic bring."""
NARROW = "exactly once, two columns read"
"""As the guide advises where columns are not needed: Spark asks a Python source for all unless they are named."""
WAYS = {
    "exactly once": {},
    NARROW: {},
    "exactly once, lz4": {"kafka.compression.type": "lz4"},
    "at least once": {"delivery": "at-least-once"},
}


def _copy(record_bytes: int) -> Callable[[Bench], Samples]:
    def run(bench: Bench) -> Samples:
        server = broker_for_spark(bench)
        if server is None:
            return {}
        source = filled_topic(bench, record_bytes, SIZE_BYTES_QUICK if bench.plan.quick else SIZE_BYTES)
        target = bench.new_topic(["headpond"], PARTITIONS)
        with local_session() as spark:

            def one_run(way: str) -> Sample:
                folder = bench.data / "spark"
                reader = spark.readStream.schema("key binary, value binary") if way == NARROW else spark.readStream
                try:
                    return _one_copy(reader, server.bootstrap, source, target, str(folder), WAYS[way], record_bytes)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
                    shutil.rmtree(f"{folder}-staging", ignore_errors=True)

            prime_page_cache(bench.data, bench.plan.primed_bytes)
            bench.warm_up_java(lambda: one_run("exactly once"))
            return bench.in_turns(list(WAYS), one_run)

    return run


def _one_copy(
    reader: Any, bootstrap: str, source: str, target: str, checkpoint: str, sink: dict[str, str], record_bytes: int
) -> Sample:
    frame = (
        reader.format("headpond")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(MICRO_BATCH * 100 // record_bytes))
        .load()
        .select("key", "value")
    )
    writer = frame.writeStream.format("headpond").option("kafka.bootstrap.servers", bootstrap).option("topic", target)
    query = writer.options(**sink).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    with failing_without_a_figure():
        query.awaitTermination()
        done = [progress for progress in query.recentProgress if progress["numInputRows"]]
    rows = sum(progress["numInputRows"] for progress in done)
    seconds = sum(progress["durationMs"]["triggerExecution"] for progress in done) / 1_000
    if not rows:
        raise LoadFailed("the query copied nothing")
    return rates(records=rows, size_bytes=rows * record_bytes, seconds=seconds)


def _scenario(name: str, record_bytes: int, bars: tuple[Bar, ...]) -> Scenario:
    return Scenario(
        name,
        f"Spark: topic to topic, {record_bytes:,}-byte records",
        f"a streaming query in local[2] copies key and value from a topic to another, {PARTITIONS} partitions each, "
        f"{MICRO_BATCH * 100 // record_bytes:,} records in a micro-batch; all of each micro-batch counts, from its "
        "planning to Spark's own commit",
        (M_RECORDS_PER_S, MB_PER_S),
        bars,
        _copy(record_bytes),
        ("rdkload",),
    )


SCENARIOS = (
    _scenario(
        "spark-sink-100b",
        100,
        tuple(
            Bar("source to exactly-once sink: at least 0.7 M records/s", M_RECORDS_PER_S, absolute=0.7, subject=subject)
            for subject in ("exactly once", NARROW)
        ),
    ),
    _scenario("spark-sink-1k", 1_000, ()),
)
