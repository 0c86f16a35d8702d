"""The few system calls that Python's library does not have, through ctypes; each degrades where the system lacks it.

ctypes costs about 4 ms to import, so it is imported at the first use, never at start-up's cost for those who do not
need it (the command-line tools).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_PR_SET_PDEATHSIG = 1
MALLOC_KEEPS_BYTES = 64 * 1024 * 1024
"""Free memory that malloc keeps for the next large buffer instead of giving it back to the kernel (page faults cost
more than the reads themselves: 0.79 against 0.25 CPU-s per GB fetched)."""

_library: Any = None


def _libc() -> Any:
    global _library
    if _library is None:
        import ctypes

        _library = ctypes.CDLL(None, use_errno=True)
    return _library


def syncfs(descriptor: int) -> bool:
    """Flush the whole file system of an open file; False where that can't be had. The GIL is released meanwhile."""
    if not has_syncfs():
        return False
    if _libc().syncfs(descriptor) == 0:
        return True
    import ctypes

    error = ctypes.get_errno()
    raise OSError(error, os.strerror(error))


@cache
def has_syncfs() -> bool:
    """Not where there is no such call, nor where it says "fine" when writing failed (Linux before 5.8)."""
    return (
        sys.platform.startswith("linux")
        and syncfs_reports_failures(os.uname().release)
        and hasattr(_libc(), "syncfs")  # a C library may lack it
    )


@cache
def syncfs_reports_failures(release: str) -> bool:
    found = re.match(r"(\d+)\.(\d+)", release)
    return found is not None and (int(found[1]), int(found[2])) >= (5, 8)


def die_with_parent() -> bool:
    """Have the kernel kill this process when the one that started it ends, however it ends; False where there is no
    such call."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(_libc().prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0) == 0)
    except (AttributeError, OSError):
        return False


def keep_large_buffers() -> bool:
    """Tell glibc's malloc to serve large buffers from its heap and to keep them; False with any other C library."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        libc = _libc()
        if not hasattr(libc, "gnu_get_libc_version"):
            return False  # musl has a mallopt-like symbol in some builds, with other meanings
        # 32 MiB is the largest threshold that glibc accepts on 64-bit machines.
        return bool(
            libc.mallopt(_M_MMAP_THRESHOLD, 32 * 1024 * 1024) and libc.mallopt(_M_TRIM_THRESHOLD, MALLOC_KEEPS_BYTES)
        )
    except (AttributeError, OSError):
        return False


def uninitialised_bytearray() -> Callable[[int], bytearray]:
    """A maker of bytearrays whose content is whatever memory held: for reads that fill them. ``bytearray(n)`` zeroes
    first, a third of the cost of reading 1 MB from the page cache. Falls back to ``bytearray`` off CPython."""
    if sys.implementation.name != "cpython":
        return bytearray
    try:
        import ctypes

        prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_char_p, ctypes.c_ssize_t)
        make = prototype(("PyByteArray_FromStringAndSize", ctypes.pythonapi))
        if len(make(None, 3)) != 3:
            return bytearray
    except (ImportError, AttributeError, OSError):
        return bytearray
    return lambda size: make(None, size)
