"""Compiles the loops of this package, once per machine where that can be remembered.

Numba writes what it compiled beside the source, or else into the user's cache folder; ``NUMBA_CACHE_DIR`` names another
one. Where it can do neither (a read-only installation, a full disk, a damaged cache), each process compiles for itself,
which takes some seconds: a cache is never a reason to fail.

Numba compiles anew when the file of a function has changed, and does not look at other files. So a compiled function
and the helpers that are compiled into it stand in one file, which is checked: an old helper would stay otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from headpond.model import invariant

Function = TypeVar("Function", bound=Callable[..., Any])
Bytes: TypeAlias = npt.NDArray[np.uint8]
Numbers: TypeAlias = npt.NDArray[np.int64]
Bounds: TypeAlias = npt.NDArray[np.int32]
Number: TypeAlias = Any
"""An int, in compiled code one of numba's."""

# The types of arguments, in numba's words.
BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)  # only read; a writable array will do
OUT_BYTES = numba.uint8[::1]
NUMBERS = numba.types.Array(numba.int64, 1, "C", readonly=True)
OUT_NUMBERS = numba.int64[::1]
TABLE = numba.int64[:, ::1]
BOUNDS = numba.int32[::1]
NUMBER = numba.int64
FLAG = numba.boolean


def compiled(*argument_types: Any) -> Callable[[Function], Function]:
    """Compiles a function for these types when it is defined: the first call costs as little as the others.

    Its helpers have to stand above it. Numba does not check bounds: whoever writes such a function checks before it
    reads. The interpreter lock is free while it runs.
    """

    def compile_now(function: Function) -> Function:
        _check_helpers(function)
        try:
            return cast("Function", numba.njit(argument_types, cache=True, nogil=True)(function))
        except Exception:  # numba and the file system have many; a fault in the function itself is raised below
            return cast("Function", numba.njit(argument_types, nogil=True)(function))

    return compile_now


def inlined(function: Function) -> Function:
    """A helper of compiled functions, compiled into each of them."""
    _check_helpers(function)
    return cast("Function", numba.njit(nogil=True, forceinline=True)(function))


def _check_helpers(function: Any) -> None:
    for name in function.__code__.co_names:
        helper = getattr(function.__globals__.get(name), "py_func", None)
        invariant(helper is None or helper.__module__ == function.__module__, "a helper in another file", name)
