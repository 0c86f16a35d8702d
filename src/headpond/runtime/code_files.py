"""The files of the program itself: a few descriptors are kept for them until all are read.

A broker starts before it has read all of its code, and a restarted one meets all its clients at once: they may take
every descriptor in its first moment. The limit is lowered by a few until the rest is read, and lifted whenever some of
it is.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from headpond.runtime.disk_file import LATER_MODULES

KEPT = 8
"""A module takes one descriptor, or two."""


class KeptCodeFiles:
    """``ports.CodeFiles``."""

    later_modules: tuple[str, ...] = LATER_MODULES

    def __init__(self) -> None:
        soft, self._hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = soft
        self._fewer = soft if soft == resource.RLIM_INFINITY else max(soft - KEPT, 1)
        self._limit_to(self._fewer)

    @contextmanager
    def within_reach(self) -> Iterator[None]:
        self._limit_to(self._most)
        try:
            yield
        finally:
            self._limit_to(self._fewer)

    def all_read(self) -> None:
        self._limit_to(self._most)
        self._fewer = self._most

    def _limit_to(self, soft: int) -> None:
        with suppress(ValueError, OSError):  # it was lowered from outside: that counts
            current, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            if hard == self._hard and current in (self._most, self._fewer) and current != soft:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
