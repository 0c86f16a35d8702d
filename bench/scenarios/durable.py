"""acks=all with the data fsynced before the answer, against Kafka that does the same and against the bare disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from ..harness import Bench
from ..measure import CPU_PER_GB, CPU_PER_REQUEST, MB_PER_S, P50, P99, REQUESTS_PER_S, Bar, Sample, Samples, Scenario
from ..servers import OURS, Server
from .requests import request_once
from .throughput import BIG_BATCHES, produce_once

BARE = "bare loop"
BARE_WRITE_BYTES = 1_000_000
BARE_FILE_BYTES = 100_000_000


def _one_record(partitions: int) -> Callable[[Bench], Samples]:
    def run(bench: Bench) -> Samples:
        names = bench.servers(*OURS, "kafka-fsync")
        topic = bench.new_topic(names, partitions)

        def load(server: Server, seconds: float) -> Sample:
            return request_once(
                server, topic, seconds, partitions=partitions, connections=64, depth=1, acks=-1, record_bytes=100
            )

        return bench.side_by_side(names, load)

    return run


def _batches(bench: Bench) -> Samples:
    names = bench.servers(*OURS, "kafka", "kafka-fsync")
    topic = bench.new_topic(names)
    client = BIG_BATCHES | {"acks": "all"}

    def load(server: Server, seconds: float) -> Sample:
        return produce_once(server, topic, seconds, record_bytes=1000, client=client)

    bench.warm_up(names, load)

    def one_run(name: str) -> Sample:
        if name == BARE:
            return bare_loop(bench.data, bench.plan.run_s)
        return load(bench.server(name), bench.plan.run_s)

    return bench.in_turns([*names, BARE], one_run)


def bare_loop(folder: Path, seconds: float) -> Sample:
    """1 MB write, fdatasync, and so on; files of 100 MB, the one before the last removed, as retention does."""
    block = bytes(BARE_WRITE_BYTES)
    written = index = 0
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        handle = os.open(folder / f"bare-{index}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
        for _ in range(BARE_FILE_BYTES // BARE_WRITE_BYTES):
            written += os.write(handle, block)
            os.fdatasync(handle)
            if time.monotonic() - started >= seconds:
                break
        os.close(handle)
        if index:
            os.unlink(folder / f"bare-{index - 1}")
        index += 1
    elapsed = time.monotonic() - started
    os.unlink(folder / f"bare-{index - 1}")
    return {"mb_per_s": written / elapsed / 1e6}


METRICS = (REQUESTS_PER_S, CPU_PER_REQUEST, P50, P99)

SCENARIOS = (
    Scenario(
        "fsync-1-partition",
        "acks=all, fsync before the answer, 64 connections, 1 partition",
        "raw sockets, 64 connections, one 100-byte record per request; Kafka with log.flush.interval.messages=1",
        METRICS,
        (Bar("at least 8x the rate of Kafka with fsync", REQUESTS_PER_S, (("kafka-fsync", 8.0),)),),
        _one_record(1),
        ("loadgen",),
    ),
    Scenario(
        "fsync-256-partitions",
        "acks=all, fsync before the answer, 64 connections, 256 partitions",
        "as above; every connection walks over 256 partitions",
        METRICS,
        (Bar("at least 4x the rate of Kafka with fsync", REQUESTS_PER_S, (("kafka-fsync", 4.0),)),),
        _one_record(256),
        ("loadgen",),
    ),
    Scenario(
        "fsync-batches",
        "acks=all, 1 KB records, 1 MB batches",
        "librdkafka producer, 4 partitions; Headpond fsyncs before each answer, 'kafka' answers from the page cache, "
        "'bare loop' is 1 MB write + fdatasync on the same disk",
        (MB_PER_S, CPU_PER_GB),
        (
            Bar(
                "at least 1.0x Kafka from the page cache or 0.7x the bare loop, whichever is lower",
                MB_PER_S,
                (("kafka", 1.0), (BARE, 0.7)),
            ),
        ),
        _batches,
        ("rdkload",),
    ),
)
