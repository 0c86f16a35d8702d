"""Memory that is not touched before it is used: the system gives pages to what is written, not to what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import cast

_ZEROED_BYTES_MAX = 1_048_576
"""To fill so much with zeros costs less than what is received into it."""


def untouched(size_bytes: int) -> bytearray:
    """A bytearray with whatever is in that memory. ``bytearray(n)`` writes n zeros: 100 MB of memory, and 30 to 160 ms
    on the loop, for a peer that has sent four bytes."""
    return bytearray(size_bytes) if size_bytes <= _ZEROED_BYTES_MAX else _allocator()(None, size_bytes)


@cache
def _allocator() -> Callable[[None, int], bytearray]:
    import ctypes  # for those who need it: it takes a while to load

    allocate = ctypes.pythonapi.PyByteArray_FromStringAndSize
    allocate.argtypes = (ctypes.c_char_p, ctypes.c_ssize_t)
    allocate.restype = ctypes.py_object
    return cast(Callable[[None, int], bytearray], allocate)
