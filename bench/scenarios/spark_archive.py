"""Spark: a topic into a lake of Parquet files, as `penstock pipeline archive` does it, commits included.

Needs the extra `spark`; without it the scenario is left out. One session (`local[2]`) for all runs, in this process:
the seconds that a session takes to start are not measured.
"""

from __future__ import annotations

import importlib.util
import shutil
import time
from typing import Any

from ..harness import Bench
from ..measure import MB_PER_S, Bar, Metric, Sample, Samples, Scenario
from ..tools import LoadFailed
from .throughput import BIG_BATCHES

M_RECORDS_PER_S = Metric("m_records_per_s", "M records/s", "higher", 2)
RECORDS, RECORDS_QUICK = 8_000_000, 3_000_000
PARTITIONS = 4
COMPRESSIONS = ("zstd", "snappy", "none")


def _archive(record_bytes: int) -> Any:
    def run(bench: Bench) -> Samples:
        missing = [name for name in ("pyspark", "pyarrow", "numba") if importlib.util.find_spec(name) is None]
        if missing:
            bench.note(f"left out: {', '.join(missing)} not installed (pip install 'penstock[spark]')")
            return {}
        names = bench.servers("penstock")
        if not names:
            return {}
        from penstock.spark.session import start_session

        server = bench.server("penstock")
        records = (RECORDS_QUICK if bench.plan.quick else RECORDS) * 100 // record_bytes
        topic = bench.new_topic(names, PARTITIONS, {})
        size_bytes = records * record_bytes
        server.tools.produce(
            server.bootstrap, topic, 300, record_bytes=record_bytes, total_bytes=size_bytes, client=BIG_BATCHES
        )
        spark = start_session("penstock-bench", master="local[2]")
        try:

            def one_run(compression: str) -> Sample:
                folder = bench.data / "lake"
                try:
                    return _one_archive(spark, server.bootstrap, topic, str(folder), compression, record_bytes)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)

            bench.attempt("warm-up", lambda: one_run("zstd"))
            return bench.in_turns(list(COMPRESSIONS), one_run)
        finally:
            spark.stop()

    return run


def _one_archive(spark: Any, bootstrap: str, topic: str, folder: str, compression: str, record_bytes: int) -> Sample:
    from penstock.spark.lake.archive import Archive, ArchiveSettings, find_backlog
    from penstock.spark.lake.store import Lake

    settings = ArchiveSettings(
        {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "includeHeaders": "true"},
        folder,
        file_size_bytes=64 << 20,
        batch_records=2_000_000,
        compression=compression,
    )
    lake = Lake(folder)
    started = time.perf_counter()
    try:
        with lake.writing():
            summary = Archive(lambda: spark, settings, lake, lambda _: None).run(find_backlog(settings, lake))
    except Exception as error:  # Spark's, of many kinds: the run gives no figure
        raise LoadFailed(str(error).splitlines()[0]) from error
    seconds = time.perf_counter() - started
    records = summary.topics[topic].records
    return {M_RECORDS_PER_S.key: records / seconds / 1e6, MB_PER_S.key: records * record_bytes / seconds / 1e6}


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
