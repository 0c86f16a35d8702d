"""Which partition of an internal topic a group or a transactional id belongs to: Java's hash, so that Kafka agrees
(docs/decisions/0005)."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=16_384)
def partition_for(key: str, partition_count: int) -> int:
    """The distance from zero, not the lower 31 bits; the one number whose distance does not fit counts as zero."""
    hashed = java_hash(key)
    return (0 if hashed == -0x8000_0000 else abs(hashed)) % partition_count


def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 units, in 32 bits."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value
