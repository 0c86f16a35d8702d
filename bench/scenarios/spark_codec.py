"""The Spark codec: whole fetches to Arrow columns and back, one thread, no broker and no Spark.

Needs pyarrow and numba of the extra `spark`; without them the scenario is left out.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from ..harness import Bench
from ..measure import MB_PER_S, Bar, Sample, Samples, Scenario
from .spark_common import CODEC, M_RECORDS_PER_S, are_installed, rates

FETCH_BYTES = 50_000_000
"""Of records, before compression: what a few fetches bring."""
DIFFERENT_VALUES = 5_000

PLAIN, SMALL_BATCHES, LARGE_VALUES = "none", "none, batches of 16 KB", "none, 1 KB"
# name -> (bytes of a value, records in a batch, codec)
READ = {
    PLAIN: (100, 8_000, 0),
    SMALL_BATCHES: (100, 150, 0),
    LARGE_VALUES: (1_000, 900, 0),
    "gzip": (100, 8_000, 1),
    "snappy": (100, 8_000, 2),
    "lz4": (100, 8_000, 3),
    "zstd": (100, 8_000, 4),
}
WRITTEN = {"none": 100, "none, 1 KB": 1_000}


def _decode(bench: Bench) -> Samples:
    if not are_installed(bench, CODEC):
        return {}
    loads = {name: _fetched(*load) for name, load in READ.items()}
    for data, count in loads.values():
        _decode_once(data, count)  # compiles, and warms memory
    return bench.in_turns(list(loads), lambda name: _decode_once(*loads[name]))


def _encode(bench: Bench) -> Samples:
    if not are_installed(bench, CODEC):
        return {}
    runs = {name: _encoder(value_bytes) for name, value_bytes in WRITTEN.items()}
    for run in runs.values():
        run()
    return bench.in_turns(list(runs), lambda name: runs[name]())


def _fetched(value_bytes: int, records_per_batch: int, codec: int) -> tuple[bytes, int]:
    """Batches as a fetch brings them, and how many records they hold."""
    from headpond.protocol.records.builder import build_batch
    from headpond.protocol.records.record import Record

    values = _values(value_bytes)
    chance = random.Random(2)
    batches: list[bytes] = []
    offset = 0
    while offset * value_bytes < FETCH_BYTES:
        records = [
            Record(
                offset + n, 1_700_000_000_000 + offset + n, b"%010d" % chance.randrange(10**9), chance.choice(values)
            )
            for n in range(records_per_batch)
        ]
        batches.append(bytes(build_batch(records, base_offset=offset, codec=codec)))
        offset += records_per_batch
    return b"".join(batches), offset


def _values(value_bytes: int) -> list[bytes]:
    """Events as people write them: JSON, of which a codec makes about a third."""
    chance = random.Random(1)
    values = []
    for _ in range(DIFFERENT_VALUES):
        text = ""
        while len(text) < value_bytes:
            text += (
                f'{{"user":{chance.randrange(10**6)},"page":"/item/{chance.randrange(10**5)}",'
                f'"ms":{chance.randrange(10**4)},"ref":"{chance.getrandbits(64):016x}"}}'
            )
        values.append(text[:value_bytes].encode())
    return values


def _decode_once(data: bytes, count: int) -> Sample:
    from headpond.model import TopicPartition
    from headpond.spark.codec import decode

    started = time.perf_counter()
    rows = sum(batch.num_rows for batch in decode(data, tp=TopicPartition("bench", 0), from_offset=0))
    seconds = time.perf_counter() - started
    assert rows == count
    return rates(records=count, size_bytes=len(data), seconds=seconds)


def _encoder(value_bytes: int) -> Callable[[], Sample]:
    import pyarrow as pa

    from headpond.spark.codec import RecordColumns, encode

    values = _values(value_bytes)
    count = FETCH_BYTES // value_bytes
    chance = random.Random(3)
    value = pa.array([chance.choice(values) for _ in range(count)], pa.binary())
    key = pa.array([b"%010d" % chance.randrange(10**9) for _ in range(count)], pa.binary())

    def run() -> Sample:
        started = time.perf_counter()
        columns = RecordColumns.of(key=key, value=value, now_ms=1_700_000_000_000)
        size_bytes = sum(len(batch.data) for batch in encode(columns, batch_bytes_max=1_000_000))
        seconds = time.perf_counter() - started
        return rates(records=count, size_bytes=size_bytes, seconds=seconds)

    return run


def _at_least(millions: float, subject: str) -> Bar:
    return Bar(f"at least {millions:g} M records/s, {subject}", M_RECORDS_PER_S, absolute=millions, subject=subject)


SCENARIOS = (
    Scenario(
        "spark-decode",
        "Spark: batches of 100 B records to Arrow, one thread",
        "50 MB of fetched batches (keys of 10 bytes, JSON values) to all columns but headers, checksums checked",
        (M_RECORDS_PER_S, MB_PER_S),
        (_at_least(10, PLAIN), _at_least(5, "lz4"), _at_least(5, "zstd")),
        _decode,
    ),
    Scenario(
        "spark-encode",
        "Spark: Arrow to batches of 100 B records, one thread",
        "50 MB of keys and values in Arrow columns encoded to batches of 1 MB, checksums included",
        (M_RECORDS_PER_S, MB_PER_S),
        (),
        _encode,
    ),
)
