"""One record per request from the raw-socket generator: CPU per request and latency, 4 partitions, acks=1."""

from __future__ import annotations

from collections.abc import Callable

from ..harness import Bench, watched
from ..measure import CPU_PER_REQUEST, P50, P99, REQUESTS_PER_S, Bar, Sample, Samples, Scenario
from ..servers import OURS, Server

METRICS = (REQUESTS_PER_S, CPU_PER_REQUEST, P50, P99)


def request_once(server: Server, topic: str, seconds: float, **options: int) -> Sample:
    with watched(server) as used:
        done = server.tools.loadgen(server.port, topic, seconds, **options)
    return {
        "requests_per_s": done["requests_per_s"],
        "cpu_us_per_request": used["cpu_s"] / done["requests"] * 1e6,
        "p50_us": done["p50_us"],
        "p99_us": done["p99_us"],
    }


def _one_record(connections: int, depth: int) -> Callable[[Bench], Samples]:
    def run(bench: Bench) -> Samples:
        names = bench.servers(*OURS, "kafka", "mock")
        topic = bench.new_topic(names)

        def load(server: Server, seconds: float) -> Sample:
            return request_once(
                server, topic, seconds, partitions=4, connections=connections, depth=depth, acks=1, record_bytes=100
            )

        return bench.side_by_side(names, load)

    return run


SCENARIOS = (
    Scenario(
        "requests-16-connections",
        "one record per request, 16 connections",
        "raw sockets, 16 connections, one request in flight on each, 100-byte value, 4 partitions, acks=1",
        METRICS,
        (Bar("CPU per request at most 0.7x Kafka's", CPU_PER_REQUEST, (("kafka", 0.7),)),),
        _one_record(16, 1),
        ("loadgen",),
    ),
    Scenario(
        "requests-pipelined",
        "one record per request, 4 connections 32 deep",
        "raw sockets, 4 connections, 32 requests in flight on each, 100-byte value, 4 partitions, acks=1",
        METRICS,
        (Bar("CPU per request at most 0.3x Kafka's", CPU_PER_REQUEST, (("kafka", 0.3),)),),
        _one_record(4, 32),
        ("loadgen",),
    ),
    Scenario(
        "requests-1-connection",
        "one record per request, 1 connection",
        "raw socket, 1 connection, one request in flight, 100-byte value, 4 partitions in turn, acks=1",
        METRICS,
        (Bar("p99 no worse than Kafka's", P99, (("kafka", 1.0),)),),
        _one_record(1, 1),
        ("loadgen",),
    ),
)
