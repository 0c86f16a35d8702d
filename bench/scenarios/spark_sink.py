"""Spark, from a topic to a topic: the source, and the sink exactly once, staging and commit included.

Needs the extra `spark`; without it the scenario is left out. One session (`local[2]`) for all runs, in this process.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..harness import Bench, prime_page_cache
from ..measure import MB_PER_S, Bar, Metric, Sample, Samples, Scenario
from ..tools import LoadFailed
from .throughput import BIG_BATCHES

M_RECORDS_PER_S = Metric("m_records_per_s", "M records/s", "higher", 2)
RECORDS, RECORDS_QUICK = 8_000_000, 3_000_000
MICRO_BATCH = 2_000_000
"""Records in a micro-batch: what some seconds of a busy topic bring."""
WAYS = {
    "exactly once": {},
    "exactly once, lz4": {"kafka.compression.type": "lz4"},
    "at least once": {"delivery": "at-least-once"},
}
PARTITIONS = 4


def _copy(record_bytes: int) -> Any:
    def run(bench: Bench) -> Samples:
        missing = [name for name in ("pyspark", "pyarrow", "numba") if importlib.util.find_spec(name) is None]
        if missing:
            bench.note(f"left out: {', '.join(missing)} not installed (pip install 'penstock[spark]')")
            return {}
        names = bench.servers("penstock")
        if not names:
            return {}
        server = bench.server("penstock")
        records = (RECORDS_QUICK if bench.plan.quick else RECORDS) * 100 // record_bytes
        source = bench.new_topic(names, PARTITIONS, {})
        server.tools.produce(
            server.bootstrap,
            source,
            300,
            record_bytes=record_bytes,
            total_bytes=records * record_bytes,
            client=BIG_BATCHES,
        )
        target = bench.new_topic(names, PARTITIONS)
        with _session() as spark:

            def one_run(way: str) -> Sample:
                folder = bench.data / "spark"
                try:
                    return _one_copy(spark, server.bootstrap, source, target, str(folder), WAYS[way], record_bytes)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
                    shutil.rmtree(f"{folder}-staging", ignore_errors=True)

            prime_page_cache(bench.data, bench.plan.primed_bytes)
            bench.attempt("warm-up", lambda: one_run("exactly once"))
            return bench.in_turns(list(WAYS), one_run)

    return run


@contextmanager
def _session() -> Iterator[Any]:
    from penstock.spark.session import start_session

    spark = start_session("penstock-bench", master="local[2]")
    try:
        yield spark
    finally:
        spark.stop()


def _one_copy(
    spark: Any, bootstrap: str, source: str, target: str, checkpoint: str, sink: dict[str, str], record_bytes: int
) -> Sample:
    frame = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(MICRO_BATCH * 100 // record_bytes))
        .load()
        .select("key", "value")
    )
    writer = frame.writeStream.format("penstock").option("kafka.bootstrap.servers", bootstrap).option("topic", target)
    query = writer.options(**sink).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
        done = [progress for progress in query.recentProgress if progress["numInputRows"]]
    except Exception as error:  # Spark's, of many kinds: the run gives no figure
        raise LoadFailed(str(error).splitlines()[0]) from error
    rows = sum(progress["numInputRows"] for progress in done)
    seconds = sum(progress["durationMs"]["triggerExecution"] for progress in done) / 1_000
    if not rows:
        raise LoadFailed("the query copied nothing")
    return {M_RECORDS_PER_S.key: rows / seconds / 1e6, MB_PER_S.key: rows * record_bytes / seconds / 1e6}


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
        (
            Bar(
                "source to exactly-once sink: at least 0.7 M records/s",
                M_RECORDS_PER_S,
                absolute=0.7,
                subject="exactly once",
            ),
        ),
    ),
    _scenario("spark-sink-1k", 1_000, ()),
)
