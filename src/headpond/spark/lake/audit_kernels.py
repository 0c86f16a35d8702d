"""Hashes of keys and records, 64 bits each, in compiled loops. The same bytes give the same hash on every machine.

Not for enemies: somebody who wants two records to have one hash will find them. For everybody else two that differ have
the same with a chance of one in 2**64.
"""

from __future__ import annotations

from typing import TypeAlias

import numba
import numpy as np
import numpy.typing as npt

from headpond.spark.codec.jit import BYTES, NUMBERS, OUT_BYTES, Bytes, Numbers, compiled, inlined

Hashes: TypeAlias = npt.NDArray[np.uint64]
HASHES = numba.types.Array(numba.uint64, 1, "C", readonly=True)
OUT_HASHES = numba.uint64[::1]

REGISTERS = 4096
_REGISTER_SHIFT = np.uint64(52)
_RANK_SHIFT = np.uint64(12)
_TOP_BIT = np.uint64(1 << 63)
_LAST_RANK = np.uint64(1 << 11)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_K = np.uint64(0xFF51AFD7ED558CCD)
_L = np.uint64(0xC4CEB9FE1A85EC53)
_NULL = np.uint64(0x5851F42D4C957F2D)
_HALF = np.uint64(32)
_THIRD = np.uint64(29)


@inlined
def _spread(h: np.uint64) -> np.uint64:
    h = (h ^ (h >> _HALF)) * _K
    h = (h ^ (h >> _THIRD)) * _L
    return h ^ (h >> _HALF)


@inlined
def _hash(data: Bytes, start: int, size: int) -> np.uint64:
    h = _SEED ^ np.uint64(size)
    at = np.uint64(start)
    for _ in range(size >> 3):
        word = np.uint64(0)
        for index in range(8):
            word |= np.uint64(data[at + np.uint64(index)]) << np.uint64(8 * index)
        h = (h ^ word) * _K
        h ^= h >> _HALF
        at += np.uint64(8)
    word = np.uint64(0)
    for index in range(size & 7):
        word |= np.uint64(data[at + np.uint64(index)]) << np.uint64(8 * index)
    return _spread((h ^ word) * _K)


@compiled(BYTES, NUMBERS, NUMBERS, OUT_HASHES)
def hash_column(data: Bytes, starts: Numbers, sizes: Numbers, out: Hashes) -> None:
    """The hash of each row's bytes; null has one of its own."""
    for row in range(starts.shape[0]):
        out[row] = _NULL if sizes[row] < 0 else _hash(data, starts[row], sizes[row])


@compiled(HASHES, HASHES, NUMBERS, NUMBERS, HASHES, HASHES, NUMBERS, OUT_HASHES)
def hash_records(
    keys: Hashes,
    values: Hashes,
    header_starts: Numbers,
    header_ends: Numbers,
    names: Hashes,
    contents: Hashes,
    times: Numbers,
    out: Hashes,
) -> None:
    """The hash of each whole record."""
    for row in range(keys.shape[0]):
        h = _spread(keys[row] ^ _SEED)
        h = _spread(h ^ values[row])
        for entry in range(header_starts[row], header_ends[row]):
            h = _spread(h ^ names[entry])
            h = _spread(h ^ contents[entry])
        out[row] = _spread(h ^ np.uint64(times[row]))


@compiled(HASHES, NUMBERS, OUT_HASHES)
def hash_places(hashes: Hashes, places: Numbers, out: Hashes) -> None:
    """The hash of each record with the place where it stands: records that have changed places have changed."""
    for row in range(hashes.shape[0]):
        out[row] = _spread(hashes[row] ^ np.uint64(places[row]))


@compiled(HASHES, OUT_BYTES)
def count_distinct(hashes: Hashes, registers: Bytes) -> None:
    """HyperLogLog: each register keeps the longest run of zeros that it has seen."""
    for row in range(hashes.shape[0]):
        h = hashes[row]
        rest = (h << _RANK_SHIFT) | _LAST_RANK
        rank = np.uint8(1)
        while not rest & _TOP_BIT:
            rest <<= np.uint64(1)
            rank += np.uint8(1)
        place = h >> _REGISTER_SHIFT
        if rank > registers[place]:
            registers[place] = rank
