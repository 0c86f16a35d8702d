"""Compaction: how fast it goes over a log, and what producers notice of it.

Speed is what the broker's own worker process does with a folder of segments, without a broker. The other scenario
asks a broker that compacts one topic for ever and takes produce requests to another: its p99 against its own
without that.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from ..harness import Bench
from ..measure import MB_PER_S, P50, P99, REQUESTS_PER_S, Bar, Metric, Sample, Samples, Scenario
from ..servers import Headpond, Server
from ..wire import Wire
from .requests import request_once

WITH, WITHOUT = "while compacting", "without"
KEYS = {"few keys": 1_000, "many keys": 100_000}
SEGMENT_BYTES = 64_000_000
RECORDS_PER_BATCH = 150
MB_PER_CPU_S = Metric("mb_per_cpu_s", "MB/CPU-s", "higher")


def _speed(bench: Bench) -> Samples:
    size_bytes = SEGMENT_BYTES if bench.plan.quick else 4 * SEGMENT_BYTES
    folders: dict[str, Path] = {}
    for name, keys in KEYS.items():
        folders[name] = bench.data / f"compaction-{keys}"
        _write_segments(folders[name], size_bytes, keys)
    try:
        return bench.in_turns(list(KEYS), lambda name: asyncio.run(_clean_once(folders[name])))
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)


def _write_segments(folder: Path, size_bytes: int, keys: int) -> None:
    """Records of about 100 bytes in uncompressed batches."""
    from headpond.protocol.records.builder import build_batch
    from headpond.protocol.records.record import Record

    folder.mkdir()
    chance = random.Random(1)
    offset = 0
    for _ in range(size_bytes // SEGMENT_BYTES):
        with (folder / f"{offset:020d}.log").open("wb") as file:
            while file.tell() < SEGMENT_BYTES:
                records = [
                    Record(offset + n, 1_700_000_000_000 + n, b"key-%08d" % chance.randrange(keys), b"x" * 80)
                    for n in range(RECORDS_PER_BATCH)
                ]
                file.write(build_batch(records, base_offset=offset))
                offset += RECORDS_PER_BATCH


async def _clean_once(folder: Path) -> Sample:
    from headpond.config.compaction import CompactionSettings
    from headpond.config.log import LogConfig
    from headpond.runtime.processes import WorkerProcesses
    from headpond.storage.compaction.cleaner import clean
    from headpond.storage.compaction.job import CleaningJob, SegmentToClean
    from headpond.storage.producers.snapshot import join_snapshot

    config, settings = LogConfig(), CompactionSettings()
    logs = sorted(folder.glob("*.log"))
    ends = [*(int(path.stem) for path in logs[1:]), 1 << 40]
    segments = [SegmentToClean(int(p.stem), end, p.stat().st_size) for p, end in zip(logs, ends, strict=True)]
    job = CleaningJob(
        path=str(folder),
        segments=segments,
        first_dirty_offset=0,
        now_ms=1_700_000_000_000,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes_max=config.segment_bytes,
        index_bytes_max=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        map_bytes_max=int(settings.dedupe_buffer_bytes * settings.load_factor),
        read_bytes=settings.io_buffer_bytes,
        producers=join_snapshot([]),
        aborted=b"",
    )
    processes = WorkerProcesses()
    try:
        async for _ in processes.steps(clean, job._replace(segments=[])):
            pass  # the process has started
        (pid,) = processes.pids
        cpu_before, started = _cpu_s(pid), time.monotonic()
        async for _ in processes.steps(clean, job):
            pass
        elapsed, cpu_s = time.monotonic() - started, _cpu_s(pid) - cpu_before
    finally:
        await processes.close()
    total_mb = sum(segment.size_bytes for segment in segments) / 1e6
    return {"mb_per_s": total_mb / elapsed, "mb_per_cpu_s": total_mb / cpu_s}


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


# --- what producers notice --------------------------------------------------------------------------------------------

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "0",
}


def _producers(bench: Bench) -> Samples:
    if not bench.alone("headpond"):
        return {}
    with bench.fresh("headpond") as server:
        assert isinstance(server, Headpond)
        server.settings = (*server.settings, "log.cleaner.backoff.ms=50")
        server.start()
        server.create_topic("asked", 4)
        with Wire.connect(server.port, time.monotonic() + 5) as wire:
            wire.create_topic("table", 1, COMPACTED)
            wire.create_topic("idle", 1, COMPACTED | {"cleanup.policy": "delete", "retention.bytes": "67108864"})

        def one_run(name: str) -> Sample:
            return _with_a_feeder(server, "table" if name == WITH else "idle", bench.plan.run_s)

        for name in (WITH, WITHOUT):
            one_run(name)
        return bench.in_turns([WITH, WITHOUT], one_run)


def _with_a_feeder(server: Server, topic: str, seconds: float) -> Sample:
    """Produce requests, while another client fills ``topic``: both variants take the same bytes, one compacts them."""
    stop = threading.Event()
    feeder = threading.Thread(target=_feed, args=(server.bootstrap, topic, stop), daemon=True)
    feeder.start()
    try:
        return request_once(server, "asked", seconds, partitions=4, connections=16, depth=1, acks=-1, record_bytes=100)
    finally:
        stop.set()
        feeder.join()


def _feed(bootstrap: str, topic: str, stop: threading.Event) -> None:
    """About 20 MB/s of keyed records, from a process of its own."""
    program = (
        "import sys, time, random\n"
        "from confluent_kafka import Producer\n"
        "producer = Producer({'bootstrap.servers': sys.argv[1], 'linger.ms': 20, 'batch.size': 500000, 'acks': 1})\n"
        "while True:\n"
        "    for _ in range(2000):\n"
        "        producer.produce(sys.argv[2], key=b'k%d' % random.randrange(20000), value=bytes(1000))\n"
        "    producer.flush()\n"
        "    time.sleep(0.08)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, bootstrap, topic], stderr=subprocess.DEVNULL)
    stop.wait()
    process.kill()
    process.wait()


SCENARIOS = (
    Scenario(
        "compaction-speed",
        "compaction of records of 100 bytes",
        "the worker process alone on a folder of 64 MB segments, uncompressed batches of 150 records; a MB counts once "
        "although it is read twice",
        (MB_PER_S, MB_PER_CPU_S),
        tuple(Bar(f"at least 60 MB/s with {name}", MB_PER_S, absolute=60.0, subject=name) for name in KEYS),
        _speed,
    ),
    Scenario(
        "compaction-producers",
        "produce requests while another topic is compacted",
        "raw sockets, 16 connections, one 100-byte record per request, acks=all; another client writes about 20 MB/s "
        "to a topic that is compacted all the time, or to one that is not",
        (REQUESTS_PER_S, P50, P99),
        (Bar("p99 at most 1.5x of without", P99, ((WITHOUT, 1.5),), subject=WITH),),
        _producers,
        ("loadgen",),
    ),
)
