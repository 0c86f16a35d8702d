"""Spark: a topic into a lake of Parquet files, as `headpond pipeline archive` does it, commits included.

Needs the extra `spark`; without it the scenario is left out. One session (`local[2]`) for
all runs, in this process: the seconds that a session takes to start are not measured.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any

from ..harness import Bench
from ..measure import MB_PER_S, Bar, Sample, Samples, Scenario
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
COMPRESSIONS = ("zstd", "snappy", "none")


def _archive(record_bytes: int) -> Callable[[Bench], Samples]:
    def run(bench: Bench) -> Samples:
        server = broker_for_spark(bench)
        if server is None:
            return {}
        topic = filled_topic(bench, record_bytes, SIZE_BYTES_QUICK if bench.plan.quick else SIZE_BYTES)
        with local_session() as spark:

            def one_run(compression: str) -> Sample:
                folder = bench.data / "lake"
                try:
                    return _one_archive(spark, server.bootstrap, topic, str(folder), compression, record_bytes)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)

            bench.warm_up_java(lambda: one_run("zstd"))
            return bench.in_turns(list(COMPRESSIONS), one_run)

    return run


def _one_archive(spark: Any, bootstrap: str, topic: str, folder: str, compression: str, record_bytes: int) -> Sample:
    from headpond.spark.lake.archive import Archive, ArchiveSettings, find_backlog
    from headpond.spark.lake.store import Lake

    settings = ArchiveSettings(
        {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "includeHeaders": "true"},
        folder,
        file_size_bytes=64 << 20,
        batch_records=2_000_000,
        compression=compression,
    )
    lake = Lake(folder)
    started = time.perf_counter()
    with failing_without_a_figure(), lake.writing():
        summary = Archive(lambda: spark, settings, lake, lambda _: None).run(find_backlog(settings, lake))
    seconds = time.perf_counter() - started
    records = summary.topics[topic].records
    return rates(records=records, size_bytes=records * record_bytes, seconds=seconds)


def _scenario(name: str, record_bytes: int, bars: tuple[Bar, ...]) -> Scenario:
    return Scenario(
        name,
        f"Spark: a topic into a lake, {record_bytes:,}-byte records",
        f"`pipeline archive` in local[2] of a topic with {PARTITIONS} partitions, 2 M records in a commit, "
        "all columns, files synced; each row is a compression of the files",
        (M_RECORDS_PER_S, MB_PER_S),
        bars,
        _archive(record_bytes),
        ("rdkload",),
    )


SCENARIOS = (
    _scenario(
        "spark-archive-100b",
        100,
        (Bar("archive: at least 0.5 M records/s", M_RECORDS_PER_S, absolute=0.5, subject="zstd"),),
    ),
    _scenario("spark-archive-1k", 1_000, ()),
)
