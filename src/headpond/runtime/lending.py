"""Bytes of a file for a socket without a copy in between: a place in the page cache, and a window on it (mmap).

Promises    Only bytes that are in memory are lent, so that the loop never waits for a device: the kernel is asked first
            (cachestat, Linux 6.5). The windows of all files together are at most ``WINDOWS_MAX``; the one not used for
            longest goes first, and one that is unused for a while is closed. A window lives for as long as
            somebody holds a view on it, whatever happens to its file; with ``ALIVE_MAX`` of them no more is lent.
Careful     A view is for handing to the kernel. Python code that looks into it would die (SIGBUS) of a page that was
            cut off or can't be read any more; a system call is only told EFAULT, and its connection ends. asyncio's own
            transports copied what they were given before Python 3.12, and whatever encrypts looks at every byte: on
            such a loop nothing is lent, and such connections must not be given lent bytes.
Why         A fetch of 1 MB costs two copies when it is read into memory first, one when the socket is given a view, and
            none when it takes the file's pages themselves (docs/decisions/0004; ``sending.py`` does that).
"""

from __future__ import annotations

import asyncio
import errno
import mmap
import os
import sys
import weakref
from collections.abc import Callable
from typing import Protocol

STEP_BYTES = 32 * 1024 * 1024
LENT_BYTES_MAX = 8 * 1024 * 1024
"""Windows begin every STEP_BYTES and reach so much further that any view begins and ends in one window."""
WINDOWS_MAX = 64
"""2.5 GiB of address space. What was read through it counts as resident memory of the process, though it is page cache
that the kernel may take back at any time."""
ALIVE_MAX = 256
"""Each has a descriptor. Clients that do not read what they asked for keep them alive; others then get copies."""
UNUSED_S = 10.0
"""A window that had no reader for this long, or up to twice as long, is closed."""

_PAGE_BYTES = mmap.PAGESIZE
_ASYNCIO_COPIES = sys.version_info < (3, 12)
_CACHESTAT = 451  # the same number on every machine that came to Linux after 2019 or renumbered by then
_MACHINES = ("x86_64", "aarch64", "riscv64", "ppc64le", "s390x")


class NotLending(OSError):
    """This system can't say what is in memory, or its event loop would look into what it is given."""


class Owner(Protocol):
    def send_to(self, socket_descriptor: int, position: int, size: int) -> int: ...


class LentBytes:
    """``ports.Lent``: a place in a file, and a view on it that lives on when the file is closed."""

    __slots__ = ("_owner", "_position", "view")

    def __init__(self, owner: Owner, position: int, view: memoryview) -> None:
        self._owner = owner
        self._position = position
        self.view = view

    def __len__(self) -> int:
        return len(self.view)

    def send_to(self, descriptor: int, at: int) -> int:
        return self._owner.send_to(descriptor, self._position + at, len(self.view) - at)


class Windows:
    """``lend`` is called on the loop's thread only. Raises ``NotLending``."""

    def __init__(self) -> None:
        if _loop_copies():
            raise NotLending("asyncio before Python 3.12 copies what it sends")
        self._pages_in_memory = _cachestat()
        self._windows: dict[tuple[object, int], mmap.mmap] = {}  # the longest unused first
        self._used: set[tuple[object, int]] = set()  # since the last look
        self._alive: set[weakref.ref[mmap.mmap]] = set()
        self._looks = False

    def lend(self, owner: Owner, descriptor: int, position: int, size: int, file_bytes: int) -> LentBytes | None:
        """``size`` bytes of the file; None when some are not in memory, or more than one window shows. ``OSError``: not
        now."""
        if not 0 < size <= LENT_BYTES_MAX:
            return None
        pages = (position + size - 1) // _PAGE_BYTES - position // _PAGE_BYTES + 1
        if self._pages_in_memory(descriptor, position, size) < pages:
            return None
        number = position // STEP_BYTES
        start = position - number * STEP_BYTES
        key = (owner, number)
        window = self._windows.pop(key, None)
        if window is None or start + size > len(window):  # the file has grown
            if len(self._alive) >= ALIVE_MAX:
                return None
            window = _map(descriptor, number * STEP_BYTES, file_bytes)
            self._alive.add(weakref.ref(window, self._alive.discard))
        self._windows[key] = window
        self._used.add(key)
        if len(self._windows) > WINDOWS_MAX:
            del self._windows[next(iter(self._windows))]
        if not self._looks:
            self._look_later()
        return LentBytes(owner, position, memoryview(window)[start : start + size])

    def forget(self, owner: object) -> None:
        """From any thread."""
        for key in list(self._windows):
            if key[0] is owner:
                self._windows.pop(key, None)
                self._used.discard(key)

    def close_unused(self) -> None:
        """Close the windows that were not used since the last call."""
        self._windows = {key: window for key, window in self._windows.items() if key in self._used}
        self._used.clear()

    def _look_later(self) -> None:
        loop = asyncio._get_running_loop()
        if loop is not None:
            self._looks = True
            loop.call_later(UNUSED_S, self._look)

    def _look(self) -> None:
        self._looks = False
        self.close_unused()
        if self._windows:
            self._look_later()


def _map(descriptor: int, start: int, file_bytes: int) -> mmap.mmap:
    size = min(STEP_BYTES + LENT_BYTES_MAX, file_bytes - start)
    try:
        return mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ, offset=start)
    except ValueError as error:  # the file is shorter than that: it is being cut, through another descriptor
        raise OSError(errno.EAGAIN, str(error)) from error


def _loop_copies() -> bool:
    return _ASYNCIO_COPIES and isinstance(asyncio._get_running_loop(), asyncio.BaseEventLoop)


def _cachestat() -> Callable[[int, int, int], int]:
    """A function of (descriptor, position, size): how many pages of that range are in memory."""
    if not sys.platform.startswith("linux") or os.uname().machine not in _MACHINES:
        raise NotLending("no cachestat on this system")
    import ctypes

    # PyDLL keeps the GIL: giving it away and taking it back would cost more than the call.
    syscall = ctypes.PyDLL(None, use_errno=True).syscall
    wanted = (ctypes.c_uint64 * 2)()
    found = (ctypes.c_uint64 * 5)()  # in memory, dirty, in writeback, evicted, recently evicted

    def pages_in_memory(descriptor: int, position: int, size: int) -> int:
        wanted[0] = position
        wanted[1] = size
        if syscall(_CACHESTAT, descriptor, wanted, found, 0) != 0:
            error = ctypes.get_errno()
            raise NotLending(error, os.strerror(error))  # an older kernel, or a sandbox that forbids it
        return found[0]

    return pages_in_memory
