"""Things with threads of their own in a program that does not think of them: its end, and its forks.

At exit     each is closed, while its threads still run.
After fork  the child has copies whose threads are gone: each is told that it belongs to the parent.
Forgotten   one that nobody refers to any more is let go of by ``on_collected``, which must not wait: it runs wherever
            the garbage collector happens to.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from collections.abc import Callable
from typing import Any, Protocol


class Owned(Protocol):
    def close(self) -> None: ...

    def disown(self) -> None:
        """In a forked child: from here on it may only say that it is the parent's."""


_alive: weakref.WeakSet[Any] = weakref.WeakSet()
_is_watching = False


def keep(thing: Owned, on_collected: Callable[[], None]) -> Callable[[], object]:
    """Returns what is called when it was closed by its owner."""
    global _is_watching
    if not _is_watching:
        _is_watching = True
        atexit.register(_close_all)
        os.register_at_fork(after_in_child=_disown_all)
    _alive.add(thing)
    finalizer = weakref.finalize(thing, on_collected)
    finalizer.atexit = False

    def forget() -> None:
        finalizer.detach()
        _alive.discard(thing)

    return forget


def _close_all() -> None:
    for thing in list(_alive):
        with contextlib.suppress(Exception):  # nobody is left to be told
            thing.close()


def _disown_all() -> None:
    for thing in list(_alive):
        thing.disown()
    _alive.clear()
