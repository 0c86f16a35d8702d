"""What the Spark scenarios share, and no scenario of its own: the packages, a broker, a filled topic, a session."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..harness import Bench
from ..measure import MB_PER_S, Metric, Sample
from ..servers import Server
from ..tools import LoadFailed
from .throughput import BIG_BATCHES

M_RECORDS_PER_S = Metric("m_records_per_s", "M records/s", "higher", 2)
PARTITIONS = 4
CODEC = ("pyarrow", "numba")
SPARK = ("pyspark", *CODEC)
FILL_S_MAX = 300.0
TRACEBACK = "Traceback (most recent call last):"


def are_installed(bench: Bench, packages: tuple[str, ...]) -> bool:
    """Notes what is missing: Spark is 1.4 GB, and not everybody has it."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        bench.note(f"left out: {', '.join(missing)} not installed here; `make bench` has them")
    return not missing


def broker_for_spark(bench: Bench) -> Server | None:
    """None when it or Spark is missing, which is noted."""
    if not are_installed(bench, SPARK) or not bench.servers("headpond"):
        return None
    return bench.server("headpond")


def filled_topic(bench: Bench, record_bytes: int, size_bytes: int, client: dict[str, str] = BIG_BATCHES) -> str:
    """A topic of Headpond that keeps all that is in it."""
    topic = bench.new_topic(["headpond"], PARTITIONS, {})
    server = bench.server("headpond")
    server.tools.produce(
        server.bootstrap, topic, FILL_S_MAX, record_bytes=record_bytes, total_bytes=size_bytes, client=client
    )
    return topic


@contextmanager
def local_session() -> Iterator[Any]:
    """Spark in this process, with a core for each of two tasks."""
    from headpond.spark.session import start_session

    spark = start_session("headpond-bench", master="local[2]")
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def failing_without_a_figure() -> Iterator[None]:
    """Whatever Spark raises, and that is of many kinds, fails the run and not the bench."""
    try:
        yield
    except Exception as error:
        raise LoadFailed(_in_a_line(error)) from error


def _in_a_line(error: Exception) -> str:
    """Spark's messages have hundreds. Of a failed Python worker the first one says nothing: its traceback begins in it,
    and the next line that is not indented is what was raised."""
    first, *rest = str(error).splitlines() or [type(error).__name__]
    if not first.endswith(TRACEBACK):
        return first
    return first.removesuffix(TRACEBACK) + next((line for line in rest if line[:1].strip()), "no reason given")


def rates(*, records: int, size_bytes: int, seconds: float) -> Sample:
    return {M_RECORDS_PER_S.key: records / seconds / 1e6, MB_PER_S.key: size_bytes / seconds / 1e6}
