"""Cost must not grow with what a broker holds: a long partition, and many partitions."""

from __future__ import annotations

import time

from ..harness import Bench, watched
from ..measure import CPU_PER_REQUEST, REQUESTS_PER_S, Bar, Metric, Sample, Samples, Scenario
from ..servers import OURS, Server
from .requests import request_once
from .startup import first_ack_s
from .throughput import BIG_BATCHES

LONG, EMPTY = "long partition", "empty partition"
MANY_PARTITIONS = 1000
# Both topics end with the same small batches, so that a fetch this far from the end reads the same bytes from both.
TAIL_RECORDS = 200
FETCH_PER_S = Metric("fetches_per_s", "fetches/s", "higher")
CPU_PER_FETCH = Metric("cpu_us_per_fetch", "CPU-us/fetch", "lower", 1)
START_S = Metric("start_s", "s to the first ack", "lower", 3)
IDLE_CPU = Metric("idle_cpu_percent", "% of a core idle", "lower", 2)


def _long_partition(bench: Bench) -> Samples:
    """Headpond alone: the bar compares it with itself."""
    needed = int(bench.plan.grown_bytes * 1.3) + 2_000_000_000
    if bench.disk_free_bytes() < needed:
        bench.note(f"left out: needs {needed / 1e9:.0f} GB of free disk")
        return {}
    if not bench.alone("headpond"):
        return {}
    with bench.fresh("headpond") as server:
        server.start()
        topics = {LONG: "long", EMPTY: "empty"}
        for topic in topics.values():
            server.create_topic(topic, 1, {"retention.ms": "-1", "retention.bytes": "-1"})
        bench.say(f"    filling a partition with {bench.plan.grown_bytes / 1e9:.0f} GB")
        server.tools.produce(
            server.bootstrap, "long", 600, partitions=1, total_bytes=bench.plan.grown_bytes, client=BIG_BATCHES
        )
        for topic in topics.values():
            _append(server, topic, bench.plan.warm_up_s)
        return bench.in_turns([LONG, EMPTY], lambda name: _at_the_end(bench, server, topics[name]))


def _at_the_end(bench: Bench, server: Server, topic: str) -> Sample:
    appended = _append(server, topic, bench.plan.run_s)
    offset = server.end_offset(topic) - TAIL_RECORDS
    with watched(server) as used:
        fetched = server.tools.loadgen(
            server.port, topic, bench.plan.run_s, connections=2, fetch_offset=offset, fetch_bytes=1_000_000
        )
    return {
        "requests_per_s": appended["requests_per_s"],
        "cpu_us_per_request": appended["cpu_us_per_request"],
        "fetches_per_s": fetched["requests_per_s"],
        "cpu_us_per_fetch": used["cpu_s"] / fetched["requests"] * 1e6,
    }


def _append(server: Server, topic: str, seconds: float) -> Sample:
    return request_once(server, topic, seconds, partitions=1, connections=4, depth=8, acks=1, record_bytes=100)


def _many_partitions(bench: Bench) -> Samples:
    def one_run(name: str) -> Sample:
        with bench.fresh(name) as server:
            server.start()
            server.create_topic("many", MANY_PARTITIONS)  # one record in each, so that all have files
            server.stop()
            started = first_ack_s(server, "many", create=False)[0]
            time.sleep(bench.plan.idle_s / 2)
            with watched(server) as used:
                time.sleep(bench.plan.idle_s)
            return {"start_s": started, "idle_cpu_percent": used["cpu_s"] / used["seconds"] * 100}

    return bench.some_runs(bench.alone(*OURS, "kafka"), bench.plan.repetitions, one_run)


SCENARIOS = (
    Scenario(
        "long-partition",
        "append and fetch at the end of a long partition and of an empty one",
        "Headpond; raw sockets; appends of one record (4 connections 8 deep, acks=1), "
        "then fetches of the last 200 batches",
        (REQUESTS_PER_S, CPU_PER_REQUEST, FETCH_PER_S, CPU_PER_FETCH),
        (
            Bar("append rate within 10 % of the empty one's", REQUESTS_PER_S, ((EMPTY, 0.9),), subject=LONG),
            Bar("fetch rate within 10 % of the empty one's", FETCH_PER_S, ((EMPTY, 0.9),), subject=LONG),
        ),
        _long_partition,
        ("loadgen", "rdkload"),
    ),
    Scenario(
        "many-partitions",
        "1,000 partitions",
        "restart after a clean stop to the first acknowledged produce; then the CPU of the idle server",
        (START_S, IDLE_CPU),
        (
            Bar("start in under 3 s", START_S, absolute=3.0),
            Bar("idle at under 1 % of a core", IDLE_CPU, absolute=1.0),
        ),
        _many_partitions,
    ),
)
