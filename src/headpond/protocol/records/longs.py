"""Timestamps are 64-bit numbers that wrap around, as Java's do: a record's distance from its batch's base timestamp may
be any, and what Kafka and its clients make of the sum is what counts."""

from __future__ import annotations

LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1


def wrapped(value: int) -> int:
    """What a Java ``long`` holds after that addition or subtraction."""
    return ((value - LONG_MIN) & 0xFFFF_FFFF_FFFF_FFFF) + LONG_MIN
