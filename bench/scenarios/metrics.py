"""What metrics cost: one record per request with the metrics port open and scraped every second, and without it."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..harness import Bench
from ..measure import CPU_PER_REQUEST, P50, P99, REQUESTS_PER_S, Bar, Sample, Samples, Scenario
from ..servers import HeadpondMetrics, Server
from .requests import request_once

SCRAPE_INTERVAL_S = 1.0  # Prometheus' default is a minute
COST = Bar("CPU per request at most 3 % more", CPU_PER_REQUEST, (("headpond", 1.03),), subject="headpond-metrics")


def _one_record(connections: int, depth: int) -> Callable[[Bench], Samples]:
    def run(bench: Bench) -> Samples:
        names = bench.servers("headpond", "headpond-metrics")
        topic = bench.new_topic(names)

        def load(server: Server, seconds: float) -> Sample:
            with _scraped(server):
                return request_once(
                    server, topic, seconds, partitions=4, connections=connections, depth=depth, acks=1, record_bytes=100
                )

        samples = bench.side_by_side(names, load)
        bench.release("headpond-metrics")
        return samples

    return run


@contextmanager
def _scraped(server: Server) -> Iterator[None]:
    if not isinstance(server, HeadpondMetrics):
        yield
        return
    enough = threading.Event()

    def scrape() -> None:
        while not enough.wait(SCRAPE_INTERVAL_S):
            urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics", timeout=10).read()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


SCENARIOS = (
    Scenario(
        "metrics-pipelined",
        "metrics on and off, 4 connections 32 deep",
        "raw sockets, 4 connections, 32 requests in flight on each, 100-byte value, 4 partitions, acks=1",
        (REQUESTS_PER_S, CPU_PER_REQUEST, P50, P99),
        (COST,),
        _one_record(4, 32),
        ("loadgen",),
    ),
    Scenario(
        "metrics-16-connections",
        "metrics on and off, 16 connections",
        "raw sockets, 16 connections, one request in flight on each, 100-byte value, 4 partitions, acks=1",
        (REQUESTS_PER_S, CPU_PER_REQUEST, P50, P99),
        (COST,),
        _one_record(16, 1),
        ("loadgen",),
    ),
)
