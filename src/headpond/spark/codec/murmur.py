"""Kafka's MurmurHash2 for many keys at once; ``client.partitioner`` has the same for one, and says what it is."""

from __future__ import annotations

import numpy as np

from headpond.spark.codec.jit import BOUNDS, BYTES, NUMBER, NUMBERS, Bounds, Bytes, Numbers, compiled, inlined

# 64-bit words that hold 32-bit numbers: numba would widen smaller ones on its own, and keep the carry.
_SEED = np.uint64(0x9747B28C)
_M = np.uint64(0x5BD1E995)
_MASK = np.uint64(0xFFFFFFFF)
_POSITIVE = np.uint64(0x7FFFFFFF)


@inlined
def _word(data: Bytes, at: np.uint64, size: np.uint64) -> np.uint64:
    """``size`` bytes, the lowest first."""
    word = np.uint64(0)
    for index in range(size):
        word |= np.uint64(data[at + index]) << (np.uint64(8) * index)
    return word


@inlined
def _murmur2(data: Bytes, start: int, size: int) -> np.uint64:
    h = _SEED ^ (np.uint64(size) & _MASK)
    at = np.uint64(start)
    for _ in range(size >> 2):
        k = _word(data, at, np.uint64(4)) * _M & _MASK
        k = (k ^ (k >> np.uint64(24))) * _M & _MASK
        h = (h * _M & _MASK) ^ k
        at += np.uint64(4)
    rest = size & 3
    if rest:
        h = (h ^ _word(data, at, np.uint64(rest))) * _M & _MASK
    h = (h ^ (h >> np.uint64(13))) * _M & _MASK
    return h ^ (h >> np.uint64(15))


@compiled(BYTES, NUMBERS, NUMBERS, NUMBER, BOUNDS)
def place_keys(data: Bytes, starts: Numbers, sizes: Numbers, partition_count: int, partitions: Bounds) -> None:
    """Writes the partition of every row that has a key; the others are left as they are."""
    for row in range(starts.shape[0]):
        size = sizes[row]
        if size >= 0:
            place = (_murmur2(data, starts[row], size) & _POSITIVE) % np.uint64(partition_count)
            partitions[row] = np.int32(place)
