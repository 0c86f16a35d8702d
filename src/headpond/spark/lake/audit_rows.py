"""What the records of a partition tell, chunk by chunk: timestamps, sizes, keys.

Memory is bounded: of keys, the ``KEYS_MAX`` most frequent are counted. As long as there are no more, counts are exact.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from headpond.spark.codec.inputs import ByteColumn, bytes_of
from headpond.spark.lake.audit_kernels import REGISTERS, Hashes, count_distinct, hash_column

COLUMNS = ("key", "value", "offset", "timestamp")
KEYS_MAX = 200_000
MERGE_ROWS = 500_000
NAMED_MAX = 200
"""Keys whose bytes are kept, for those that may turn out to be the most frequent."""
KEY_BYTES_SHOWN_MAX = 200
BUCKETS = 33


class KeyCount(msgspec.Struct, frozen=True):
    key: bytes
    records: int


class RowFacts(msgspec.Struct):
    late_records: int = 0
    """With a timestamp before that of a record that stands in front of them."""
    late_ms_max: int = 0
    late_offset: int = -1
    """Of the latest."""
    first_ms: int | None = None
    last_ms: int | None = None
    key_bytes: int = 0
    value_bytes: int = 0
    largest_bytes: int = 0
    largest_offset: int = -1
    sizes: list[int] = []
    """How many records are of 0 bytes, 1, 2-3, 4-7, ... (key and value together)."""
    null_keys: int = 0
    null_values: int = 0
    registers: bytes = b""
    """Of the distinct keys (HyperLogLog)."""
    top: list[KeyCount] = []
    is_exact: bool = True


class RowWalk:
    def __init__(self) -> None:
        self.facts = RowFacts()
        self._sizes = np.zeros(BUCKETS, np.int64)
        self._latest_ms: int | None = None
        self._keys = _KeyCounts()

    def take(self, rows: pa.RecordBatch) -> None:
        offsets = rows.column("offset").to_numpy(zero_copy_only=False)
        times_ms = rows.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False) // 1000
        key = bytes_of(rows.column("key"), rows.num_rows, "key")
        value = bytes_of(rows.column("value"), rows.num_rows, "value")
        self._take_times(times_ms, offsets)
        self._take_sizes(key, value, offsets)
        self._keys.take(key)

    def end(self, top: int) -> RowFacts:
        facts = self.facts
        facts.sizes = [int(count) for count in self._sizes]
        facts.registers = self._keys.registers.tobytes()
        facts.top = self._keys.top(top)
        facts.is_exact = self._keys.is_exact
        return facts

    def _take_times(self, times_ms: np.ndarray, offsets: np.ndarray) -> None:
        facts = self.facts
        latest_ms = np.maximum.accumulate(times_ms)
        if self._latest_ms is not None:
            latest_ms = np.maximum(latest_ms, self._latest_ms)
        self._latest_ms = int(latest_ms[-1])
        late_ms = latest_ms - times_ms
        worst = int(late_ms.argmax())
        facts.late_records += int(np.count_nonzero(late_ms))
        if late_ms[worst] > facts.late_ms_max:
            facts.late_ms_max, facts.late_offset = int(late_ms[worst]), int(offsets[worst])
        first_ms = int(times_ms.min())
        facts.first_ms = first_ms if facts.first_ms is None else min(facts.first_ms, first_ms)
        facts.last_ms = self._latest_ms

    def _take_sizes(self, key: ByteColumn, value: ByteColumn, offsets: np.ndarray) -> None:
        facts = self.facts
        key_sizes, value_sizes = np.maximum(key.sizes, 0), np.maximum(value.sizes, 0)
        sizes = key_sizes + value_sizes
        buckets = np.frexp(sizes.astype(np.float64))[1]  # 0 -> 0, 1 -> 1, 2..3 -> 2, 4..7 -> 3
        self._sizes += np.bincount(buckets, minlength=BUCKETS)
        facts.key_bytes += int(key_sizes.sum())
        facts.value_bytes += int(value_sizes.sum())
        facts.null_keys += int(np.count_nonzero(key.sizes < 0))
        facts.null_values += int(np.count_nonzero(value.sizes < 0))
        largest = int(sizes.argmax())
        if sizes[largest] > facts.largest_bytes:
            facts.largest_bytes, facts.largest_offset = int(sizes[largest]), int(offsets[largest])


class _KeyCounts:
    def __init__(self) -> None:
        self.registers = np.zeros(REGISTERS, np.uint8)
        self.is_exact = True
        self._hashes = np.empty(0, np.uint64)
        self._counts = np.empty(0, np.int64)
        self._names: dict[int, bytes] = {}
        self._waiting: list[tuple[Hashes, ByteColumn]] = []
        self._waiting_rows = 0

    def take(self, key: ByteColumn) -> None:
        hashes = np.empty(len(key.sizes), np.uint64)
        hash_column(key.data, key.starts, key.sizes, hashes)
        has_key = key.sizes >= 0
        if not bool(has_key.all()):
            hashes = hashes[has_key]
            key = ByteColumn(key.data, key.starts[has_key], key.sizes[has_key])
        if len(hashes):
            count_distinct(hashes, self.registers)
            self._waiting.append((hashes, key))
            self._waiting_rows += len(hashes)
        if self._waiting_rows >= MERGE_ROWS:
            self._merge()

    def _merge(self) -> None:
        if not self._waiting:
            return
        met = np.concatenate([hashes for hashes, _ in self._waiting])
        hashes, inverse = np.unique(np.concatenate([self._hashes, met]), return_inverse=True)
        counts = np.bincount(
            inverse, weights=np.concatenate([self._counts, np.ones(len(met), np.int64)]), minlength=len(hashes)
        ).astype(np.int64)
        if len(hashes) > KEYS_MAX:
            self.is_exact = False
            kept = np.sort(np.argpartition(counts, -KEYS_MAX // 2)[-KEYS_MAX // 2 :])
            hashes, counts = hashes[kept], counts[kept]
        self._hashes, self._counts = hashes, counts
        self._name(set(self._most(NAMED_MAX)))
        self._waiting, self._waiting_rows = [], 0

    def _name(self, wanted: set[int]) -> None:
        """The bytes of keys that have just become frequent are among those that wait: they rose by these."""
        self._names = {one: name for one, name in self._names.items() if one in wanted}
        for hashes, key in self._waiting:
            lacking = wanted - self._names.keys()
            if not lacking:
                return
            found, rows = np.unique(hashes, return_index=True)
            for one in np.intersect1d(found, np.array(sorted(lacking), np.uint64)):
                row = int(rows[np.searchsorted(found, one)])
                start = int(key.starts[row])
                end = start + min(int(key.sizes[row]), KEY_BYTES_SHOWN_MAX)
                self._names[int(one)] = key.data[start:end].tobytes()

    def _most(self, count: int) -> list[int]:
        if len(self._hashes) > count:
            best = np.argpartition(self._counts, -count)[-count:]
        else:
            best = np.arange(len(self._hashes))
        ordered = best[np.lexsort((self._hashes[best], -self._counts[best]))]
        return [int(one) for one in self._hashes[ordered]]

    def top(self, count: int) -> list[KeyCount]:
        self._merge()
        found = []
        for one in self._most(min(count, NAMED_MAX)):
            place = int(np.searchsorted(self._hashes, np.uint64(one)))
            found.append(KeyCount(self._names.get(one, b"?"), int(self._counts[place])))
        return found


def distinct_estimate(registers: list[bytes]) -> int:
    """How many distinct keys some partitions have together, to about 2 %."""
    merged = np.zeros(REGISTERS, np.uint8)
    for one in registers:
        if one:
            merged = np.maximum(merged, np.frombuffer(one, np.uint8))
    empty = int(np.count_nonzero(merged == 0))
    if empty == REGISTERS:
        return 0
    alpha = 0.7213 / (1 + 1.079 / REGISTERS)
    estimate = alpha * REGISTERS**2 / float(np.sum(np.power(2.0, -merged.astype(np.float64))))
    if estimate <= 2.5 * REGISTERS and empty:
        estimate = REGISTERS * float(np.log(REGISTERS / empty))
    return round(estimate)
