"""The log as a library (`headpond.log`), in the process of the bench: no broker and no network.

The disk's syncs decide what durable appends of single records can be; the rows of `library-flush` show what is left
without them.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ..harness import Bench
from ..measure import MB_PER_S, P50, P99, Bar, Metric, Sample, Samples, Scenario
from ..wire import RequestFailed

RECORDS_PER_S = Metric("records_per_s", "records/s", "higher")
OPENED = Metric("opened_s", "s to import and open", "lower", 3)
SYNCED = Metric("synced_us", "us of a bare fdatasync p50", "lower")

SMALL_BYTES, LARGE_BYTES = 100, 1_000
THREADS = 16
READ_RECORDS = 1_000_000
RANDOM_READS = 20_000
OPENINGS = 9

READ, BATCHES, RANDOM = "read", "read_batches", "read of one, at random"
SEQUENTIAL = "read of one, in order"
OPEN_PROGRAM = """
import sys, time
began = time.perf_counter()
import headpond.log
headpond.log.open(sys.argv[1])
print(time.perf_counter() - began)
"""


def _append(threads: int, flush: str) -> Callable[[Bench], Sample]:
    def run(bench: Bench) -> Sample:
        import headpond.log

        folder = _new_folder(bench)
        with headpond.log.open(folder, flush=flush) as log:  # type: ignore[arg-type]
            counts = [0] * threads
            end = time.perf_counter() + bench.plan.run_s
            value = bytes(SMALL_BYTES)

            def append(thread: int) -> None:
                while time.perf_counter() < end:
                    log.append(value)
                    counts[thread] += 1

            running = [threading.Thread(target=append, args=(number,)) for number in range(threads)]
            began = time.perf_counter()
            for thread in running:
                thread.start()
            for thread in running:
                thread.join()
            seconds = time.perf_counter() - began
            if log.end_offset != sum(counts):
                raise RequestFailed(f"{sum(counts)} records were appended, the log has {log.end_offset}")
        shutil.rmtree(folder)
        return {"records_per_s": sum(counts) / seconds, "synced_us": _bare_sync_us(bench.data)}

    return run


def _flush_modes(bench: Bench) -> Samples:
    runs = {
        "no sync": _append(THREADS, "os"),
        "each": _append(1, "ack"),
        "batched": _append(THREADS, "ack"),
    }
    return bench.in_turns(list(runs), lambda name: runs[name](bench))


def _append_many(bench: Bench) -> Samples:
    import headpond.log

    records = [bytes(LARGE_BYTES)] * (bench.plan.consume_bytes // 4 // LARGE_BYTES)

    def one_run(_: str) -> Sample:
        folder = _new_folder(bench)
        with headpond.log.open(folder) as log:
            began = time.perf_counter()
            log.append_many(records)
            seconds = time.perf_counter() - began
        shutil.rmtree(folder)
        return {"mb_per_s": len(records) * LARGE_BYTES / seconds / 1e6}

    return bench.in_turns(["headpond"], one_run)


def _reads(bench: Bench) -> Samples:
    import headpond.log

    folder = _new_folder(bench)
    with headpond.log.open(folder) as log:
        log.append_many([bytes(SMALL_BYTES)] * READ_RECORDS)
        chance = random.Random(1)

        def one_run(name: str) -> Sample:
            began = time.perf_counter()
            if name == READ:
                count = sum(1 for _ in log.read())
            elif name == BATCHES:
                count = sum(batch.record_count for batch in log.read_batches())
            else:
                first = chance.randrange(READ_RECORDS - RANDOM_READS)
                in_order = range(first, first + RANDOM_READS)
                return _one_by_one(
                    log, list(in_order) if name == SEQUENTIAL else chance.choices(range(READ_RECORDS), k=RANDOM_READS)
                )
            seconds = time.perf_counter() - began
            if count != READ_RECORDS:
                raise RequestFailed(f"{count} of {READ_RECORDS} records were read")
            return {"records_per_s": count / seconds}

        samples = bench.in_turns([READ, BATCHES, SEQUENTIAL, RANDOM], one_run)
    shutil.rmtree(folder)
    return samples


def _one_by_one(log: object, offsets: list[int]) -> Sample:
    """Each a call of its own."""
    took: list[float] = []
    for offset in offsets:
        began = time.perf_counter()
        record = next(log.read(offset))  # type: ignore[attr-defined]
        took.append(time.perf_counter() - began)
        if record.offset != offset:
            raise RequestFailed(f"offset {record.offset} came for {offset}")
    rate = len(took) / sum(took)
    took.sort()
    return {"records_per_s": rate, "p50_us": took[len(took) // 2] * 1e6, "p99_us": took[len(took) * 99 // 100] * 1e6}


def _open(bench: Bench) -> Samples:
    # As for a broker: an installed package has its byte code.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def one_run(_: str) -> Sample:
        folder = _new_folder(bench)
        command = [sys.executable, "-c", OPEN_PROGRAM, str(folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RequestFailed(f"a log could not be opened: {done.stderr}")
        shutil.rmtree(folder)
        return {"opened_s": float(done.stdout)}

    bench.attempt("warm-up", lambda: one_run("headpond"))
    return bench.some_runs(["headpond"], OPENINGS, one_run)


def _bare_sync_us(folder: Path) -> float:
    """What the disk takes at this moment for a few records of 100 bytes, without anybody around it."""
    path = folder / "bare-sync"
    took: list[float] = []
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    for _ in range(200):
        os.write(handle, bytes(THREADS * SMALL_BYTES))
        began = time.perf_counter()
        os.fdatasync(handle)
        took.append(time.perf_counter() - began)
    os.close(handle)
    path.unlink()
    return sorted(took)[len(took) // 2] * 1e6


def _new_folder(bench: Bench) -> Path:
    folder = bench.data / "library"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


SCENARIOS = (
    Scenario(
        "library-flush",
        "library: appends of 100 B, by flush mode",
        "'no sync': 16 threads, flush='os'; 'each': one thread, so that each append has its own sync; 'batched': 16 "
        "threads share their syncs, the default. Beside them what the bare disk took for a sync right after the run",
        (RECORDS_PER_S, SYNCED),
        (Bar("at least 20,000 durable records/s, 16 threads", RECORDS_PER_S, absolute=20_000, subject="batched"),),
        _flush_modes,
    ),
    Scenario(
        "library-append-many",
        "library: append_many of 1 KB, durable",
        "half a gigabyte in one call, until all is durable",
        (MB_PER_S,),
        (Bar("at least 150 MB/s", MB_PER_S, absolute=150),),
        _append_many,
    ),
    Scenario(
        "library-read",
        "library: reads of 100 B records, sequential and at random",
        "a million records in batches of 32 KB, in the page cache; one thread. 'read of one': each a call of its own",
        (RECORDS_PER_S, P50, P99),
        (
            Bar("at least 250,000 records/s", RECORDS_PER_S, absolute=250_000, subject=READ),
            Bar("batches of at least 5 M records/s", RECORDS_PER_S, absolute=5_000_000, subject=BATCHES),
            Bar("a random read in at most 50 us (p50)", P50, absolute=50, subject=RANDOM),
        ),
        _reads,
    ),
    Scenario(
        "library-open",
        "library: import and open",
        "a new process each time, a new folder, from the import to the open log",
        (OPENED,),
        (Bar("at most 0.1 s", OPENED, absolute=0.1),),
        _open,
    ),
)
