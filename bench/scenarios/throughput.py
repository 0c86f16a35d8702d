"""Bulk produce and consume with librdkafka clients: MB/s and broker CPU per GB, 4 partitions, acks=1."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..harness import Bench, watched
from ..measure import CPU_PER_GB, MB_PER_S, RSS, Bar, Sample, Samples, Scenario
from ..servers import OURS, Server
from ..tools import LoadFailed

BIG_BATCHES = {"linger.ms": "5", "batch.size": "1000000", "acks": "1"}
SMALL_BATCHES = {"linger.ms": "0", "batch.size": "16384", "acks": "1"}
SERVERS = (*OURS, "kafka", "mock")


def produce_once(server: Server, topic: str, seconds: float, **options: Any) -> Sample:
    """``options``: those of ``Tools.produce``."""
    with watched(server) as used:
        done = server.tools.produce(server.bootstrap, topic, seconds, **options)
    return {
        "mb_per_s": done["mb_per_s"],
        "cpu_s_per_gb": used["cpu_s"] / (done["bytes"] / 1e9),
        "client_cpu_s_per_gb": done["cpu_s"] / (done["bytes"] / 1e9),
        "rss_mb": used["rss_mb"],
    }


def _produce(record_bytes: int, client: dict[str, str]) -> Callable[[Bench], Samples]:
    def run(bench: Bench) -> Samples:
        names = bench.servers(*SERVERS)
        topic = bench.new_topic(names)

        def load(server: Server, seconds: float) -> Sample:
            return produce_once(server, topic, seconds, record_bytes=record_bytes, client=client)

        return bench.side_by_side(names, load)

    return run


def _consume(bench: Bench) -> Samples:
    """The topic fits into the page cache and is read several times from its beginning."""
    names = bench.servers(*OURS, "kafka")
    topic = bench.new_topic(names, configs={})
    for name in list(names):
        bench.say(f"    filling {name} with {bench.plan.consume_bytes / 1e9:.0f} GB")
        filled = bench.attempt(name, partial(_fill, bench, bench.server(name), topic))
        if filled is None:
            names.remove(name)

    def load(server: Server, seconds: float) -> Sample:
        passes = max(1, round(seconds * 1.2e9 / bench.plan.consume_bytes))
        with watched(server) as used:
            done = server.tools.consume(server.bootstrap, topic, passes=passes)
        gigabytes = done["total_bytes"] / 1e9  # the broker's CPU went into all of it, timed or not
        if gigabytes * 1e9 < passes * bench.plan.consume_bytes:
            raise LoadFailed(f"only {gigabytes:.3f} GB came back in {passes} passes")
        return {"mb_per_s": done["mb_per_s"], "cpu_s_per_gb": used["cpu_s"] / gigabytes, "rss_mb": used["rss_mb"]}

    return bench.side_by_side(names, load)


def _fill(bench: Bench, server: Server, topic: str) -> Sample:
    return server.tools.produce(server.bootstrap, topic, 300, total_bytes=bench.plan.consume_bytes, client=BIG_BATCHES)


METRICS = (MB_PER_S, CPU_PER_GB, RSS)


def _bars(rate: float, cpu: float) -> tuple[Bar, ...]:
    return (
        Bar(f"at least {rate:g}x Kafka's MB/s", MB_PER_S, (("kafka", rate),)),
        Bar(f"broker CPU per GB at most {cpu:g}x Kafka's", CPU_PER_GB, (("kafka", cpu),)),
    )


SCENARIOS = (
    Scenario(
        "produce-1k",
        "produce 1 KB records, 1 MB batches",
        "one librdkafka producer, 4 partitions, acks=1, linger 5 ms, 1 MB batches, 1,000-byte values",
        METRICS,
        _bars(1.3, 0.6),
        _produce(1000, BIG_BATCHES),
        ("rdkload",),
    ),
    Scenario(
        "produce-100b",
        "produce 100 B records, 1 MB batches",
        "as above with 100-byte values",
        METRICS,
        _bars(1.1, 0.6),
        _produce(100, BIG_BATCHES),
        ("rdkload",),
    ),
    Scenario(
        "produce-16k-batches",
        "produce 1 KB records, 16 KB batches",
        "one librdkafka producer, 4 partitions, acks=1, linger 0, 16 KB batches, 1,000-byte values",
        METRICS,
        _bars(2.5, 0.6),
        _produce(1000, SMALL_BATCHES),
        ("rdkload",),
    ),
    Scenario(
        "consume-1k",
        "consume 1 KB records",
        "one librdkafka consumer with 4 assigned partitions reads a topic in the page cache from its beginning",
        METRICS,
        _bars(1.15, 0.9),
        _consume,
        ("rdkload",),
    ),
)
