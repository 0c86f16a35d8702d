"""Spark: `spark.read...sum(length(value))`, our source beside Spark's own Kafka connector, with one broker and topic.

Needs the extra `spark`, and for the connector java, mvn, Maven Central and PyPI (its
PySpark is an older one, in an environment of its own); what is missing is left out. Each side has one session
(`local[2]`) for all its runs: the seconds that a session takes to start are not measured, the planning of each query
is.

The bars are for batches of 16 KB, as Kafka's own producer makes them; those of 1 MB, which librdkafka makes under load,
are shown beside them.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from ..harness import Bench, prime_page_cache
from ..measure import MB_PER_S, Bar, Sample, Samples, Scenario
from ..tools import HERE, LoadFailed
from .spark_common import (
    M_RECORDS_PER_S,
    PARTITIONS,
    broker_for_spark,
    failing_without_a_figure,
    filled_topic,
    local_session,
    rates,
)
from .throughput import BIG_BATCHES

SIZE_BYTES, SIZE_BYTES_QUICK = 1_000_000_000, 300_000_000
WARM_UPS = 2
"""Runs of each before those that count: Java compiles what it runs often."""
USUAL_BATCHES = {"linger.ms": "5", "batch.size": "16384", "acks": "1"}
OURS, ONLY_VALUES, CONNECTOR = "headpond", "headpond, only values", "Spark's connector"
OURS_LARGE, CONNECTOR_LARGE = "headpond, batches of 1 MB", "Spark's connector, batches of 1 MB"
RUN_S_MAX = 120.0
SET_UP_S_MAX = 1_200.0
"""PySpark is 400 MB to download."""


def _read(record_bytes: int) -> Callable[[Bench], Samples]:
    def run(bench: Bench) -> Samples:
        server = broker_for_spark(bench)
        if server is None:
            return {}
        size_bytes = SIZE_BYTES_QUICK if bench.plan.quick else SIZE_BYTES
        prime_page_cache(bench.data, bench.plan.primed_bytes)

        def filled(client: dict[str, str]) -> tuple[str, int]:
            topic = filled_topic(bench, record_bytes, size_bytes, client)
            return topic, sum(server.end_offset(topic, partition) for partition in range(PARTITIONS))

        usual, large = filled(USUAL_BATCHES), filled(BIG_BATCHES)
        with local_session() as spark, _connector(bench) as connector:
            ours = partial(_our_read, spark, server.bootstrap)
            reads: dict[str, tuple[Callable[[str], tuple[float, int]], tuple[str, int]]] = {
                OURS: (ours, usual),
                ONLY_VALUES: (partial(ours, schema="value binary"), usual),
                OURS_LARGE: (ours, large),
            }
            if connector is not None:
                theirs = partial(connector.read, server.bootstrap)
                reads |= {CONNECTOR: (theirs, usual), CONNECTOR_LARGE: (theirs, large)}

            def one_run(name: str) -> Sample:
                read, (topic, records) = reads[name]
                seconds, value_bytes = read(topic)
                # The bench tries each new partition with a tiny record: all but those are of the same size.
                if value_bytes // record_bytes != records - PARTITIONS:
                    raise LoadFailed(f"{value_bytes} bytes were read of {records} records of {record_bytes} bytes")
                return rates(records=records, size_bytes=value_bytes, seconds=seconds)

            for name in list(reads) * WARM_UPS:
                bench.attempt(f"{name}, warm-up", partial(one_run, name))
            return bench.in_turns(list(reads), one_run)

    return run


def _our_read(spark: Any, bootstrap: str, topic: str, schema: str = "") -> tuple[float, int]:
    started = time.perf_counter()
    reader = spark.read.format("headpond").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    with failing_without_a_figure():
        frame = (reader.schema(schema) if schema else reader).load()
        value_bytes = frame.selectExpr("sum(length(value))").collect()[0][0]
    return time.perf_counter() - started, value_bytes


class _Connector:
    """``spark_connector.py`` as a process."""

    def __init__(self, python: str, jars: str, log: Path) -> None:
        environment = {**os.environ, "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
        for name in ("SPARK_HOME", "PYSPARK_DRIVER_PYTHON", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
            environment.pop(name, None)
        with log.open("wb") as log_file:
            self.process = subprocess.Popen(
                [python, str(HERE / "spark_connector.py"), jars],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                text=True,
                env=environment,
            )

    def read(self, bootstrap: str, topic: str) -> tuple[float, int]:
        orders, answers = self._streams()
        print(json.dumps({"bootstrap": bootstrap, "topic": topic}), file=orders, flush=True)
        if not select.select([answers], [], [], RUN_S_MAX)[0]:
            raise LoadFailed(f"Spark's connector did not answer within {RUN_S_MAX:.0f} s")
        answer = json.loads(answers.readline() or '{"error": "its process ended"}')
        if "error" in answer:
            raise LoadFailed(f"Spark's connector: {answer['error']}")
        return answer["seconds"], answer["value_bytes"]

    def close(self) -> None:
        self._streams()[0].close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _streams(self) -> tuple[IO[str], IO[str]]:
        assert self.process.stdin is not None and self.process.stdout is not None
        return self.process.stdin, self.process.stdout


@contextmanager
def _connector(bench: Bench) -> Iterator[_Connector | None]:
    try:
        python, jars = _from_oracle("spark-python"), _from_oracle("spark-jars")
    except LoadFailed as failure:
        bench.note(f"{CONNECTOR} left out: {failure}")
        yield None
        return
    connector = _Connector(python, jars, bench.data / "spark-connector.log")
    try:
        yield connector
    finally:
        connector.close()


def _from_oracle(what: str) -> str:
    command = [str(HERE.parent / "tools" / "kafka_oracle"), what]
    environment = {**os.environ, "PYTHON": sys.executable}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SET_UP_S_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        raise LoadFailed(f"{what} took longer than {SET_UP_S_MAX:.0f} s") from None
    if done.returncode:
        raise LoadFailed((done.stderr.strip().splitlines() or ["no reason given"])[-1])
    return done.stdout.strip()


def _scenario(name: str, record_bytes: int, factor: float) -> Scenario:
    return Scenario(
        name,
        f"Spark: sum(length(value)) of a topic, {record_bytes:,}-byte records",
        f"spark.read in local[2] of a topic with {PARTITIONS} partitions, {SIZE_BYTES / 1e9:.0f} GB, in batches of "
        "16 KB where not said otherwise, with Headpond's source (all columns, or only the one that .schema names) and "
        "with Spark's own Kafka connector, from the same broker; planning included",
        (M_RECORDS_PER_S, MB_PER_S),
        (Bar(f"at least {factor:g} times Spark's own connector", MB_PER_S, ((CONNECTOR, factor),), subject=OURS),),
        _read(record_bytes),
        ("rdkload",),
    )


SCENARIOS = (_scenario("spark-read-100b", 100, 2), _scenario("spark-read-1k", 1_000, 1.5))
