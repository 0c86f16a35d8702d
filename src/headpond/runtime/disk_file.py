"""One open file of the machine: ``ports.File`` on a descriptor.

Promises    A write is appended whole, or raises and leaves a part behind for the caller to truncate. What ``sync``
            returned for survives a power cut. A failed sync stays failed: Linux marks the lost pages clean, so that a
            second fsync would lie (fsyncgate).
On the loop Only ``write``, ``read_nowait``, ``lend_nowait``, ``send_to``, ``size`` and ``close`` may run there;
            anything that can wait for a device raises ``InvariantBroken`` on a thread that runs an event loop.
Elsewhere   macOS has no RWF_NOWAIT (``read_nowait`` reads plainly), no fdatasync (F_FULLFSYNC), and lends nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headpond.model import invariant
from headpond.ports import Buffer
from headpond.runtime import posix

if TYPE_CHECKING:
    from headpond.runtime.lending import LentBytes, Windows

# From this size on a buffer that is not zeroed first pays for the slower call that makes it.
_UNZEROED_FROM_BYTES = 32 * 1024
# Linux cuts one read or write at 2 GiB minus a page; smaller pieces also let other threads have the disk in between.
_READ_PIECE_BYTES_MAX = 1 << 30

_get_loop = asyncio._get_running_loop
_full_fsync: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_fdatasync: Callable[[int], None] | None = getattr(os, "fdatasync", None)
_fadvise: Callable[[int, int, int, int], None] | None = getattr(os, "posix_fadvise", None)  # macOS has none
_dont_need: int | None = getattr(os, "POSIX_FADV_DONTNEED", None)
_nowait_flag: int = getattr(os, "RWF_NOWAIT", 0)
_make_buffer: Callable[[int], bytearray] | None = None
_windows: Windows | None = None
_can_lend = True

# One for all files: it is held for a few instructions, by blocking calls and by close only.
_users_guard = threading.Lock()


class DiskFile:
    """``ports.File`` on a descriptor in append mode.

    ``close`` on the loop may meet a blocking call in a worker. A descriptor closed under such a call could be handed
    out for another file at once, and the call would read or cut that one: so the last user closes it.
    """

    __slots__ = (
        "_descriptor",
        "_end",
        "_is_closed",
        "_is_lent",
        "_map",
        "_nowait",
        "_path",
        "_sync_error",
        "_users",
        "_view",
        "_writable",
        "device",
    )

    def __init__(self, descriptor: int, path: str, *, writable: bool) -> None:
        self._descriptor = descriptor
        self._users = 0  # blocking calls under way
        self._is_closed = False
        self._is_lent = False
        self._path = path
        self._writable = writable
        found = os.fstat(descriptor)
        self._end = found.st_size
        self.device = found.st_dev
        self._nowait = _nowait_flag
        self._map: mmap.mmap | None = None
        self._view: memoryview | None = None
        self._sync_error: OSError | None = None

    def __repr__(self) -> str:
        return f"DiskFile({self._path!r}{', closed' if self._is_closed else ''})"

    def write(self, data: Buffer) -> None:
        if self._is_closed:
            raise OSError(errno.EBADF, "the file is closed", self._path)
        written = os.write(self._descriptor, data)
        self._end += written
        if written != len(data):
            self._write_rest(memoryview(data)[written:])

    def _write_rest(self, rest: memoryview) -> None:
        """After a short write: the next call either goes on or names the reason (no space, a size limit)."""
        while rest:
            written = os.write(self._descriptor, rest)
            if written == 0:
                raise OSError(errno.EIO, "the system wrote nothing and gave no reason", self._path)
            self._end += written
            rest = rest[written:]

    def read_nowait(self, position: int, size: int) -> Buffer | None:
        if self._writable:  # one writer: the end is known, so that a generous size costs no memory
            size = min(size, self._end - position)
        if self._is_closed:
            raise OSError(errno.EBADF, "the file is closed", self._path)
        if size <= 0:
            return b""
        if not self._nowait:
            return os.pread(self._descriptor, size, position)
        buffer = bytearray(size) if size < _UNZEROED_FROM_BYTES else _unzeroed(size)
        try:
            count = os.preadv(self._descriptor, (buffer,), position, self._nowait)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
            self._nowait = 0  # a file system without it: its reads block for a moment at worst
            return os.pread(self._descriptor, size, position)
        if count != size:
            del buffer[count:]
        return buffer

    def lend_nowait(self, position: int, size: int) -> LentBytes | None:
        if not _can_lend or self._is_closed or position + size > self._end:
            return None
        self._is_lent = True
        try:
            return _lender().lend(self, self._descriptor, position, size, self._end)
        except OSError as error:
            _stop_lending_after(error)
            return None

    def send_to(self, socket_descriptor: int, position: int, size: int) -> int:
        """Up to ``size`` bytes, of a range that is in memory, straight into a socket; how many it took."""
        with self._in_use() as descriptor:
            return os.sendfile(socket_descriptor, descriptor, position, size)

    def read(self, position: int, size: int) -> bytes:
        refuse_on_loop()
        with self._in_use() as descriptor:
            data = os.pread(descriptor, min(size, _READ_PIECE_BYTES_MAX), position)
            if len(data) == size or not data:
                return data
            pieces = [data]
            got = len(data)
            while got < size:
                data = os.pread(descriptor, min(size - got, _READ_PIECE_BYTES_MAX), position + got)
                if not data:
                    break
                pieces.append(data)
                got += len(data)
            return b"".join(pieces)

    def size(self) -> int:
        return self._end if self._writable else os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        refuse_on_loop()
        with self._in_use() as descriptor:
            os.ftruncate(descriptor, size)
            self._end = size

    def sync(self) -> None:
        refuse_on_loop()
        if self._sync_error is not None:
            raise self._sync_error
        with self._in_use() as descriptor:
            try:
                _sync_descriptor(descriptor)
            except OSError as error:
                self._sync_error = error
                raise

    @property
    def descriptor(self) -> int:
        """-1 when it is closed."""
        return -1 if self._is_closed else self._descriptor

    def forget_cached(self) -> None:
        refuse_on_loop()
        if _fadvise is not None and _dont_need is not None:
            with self._in_use() as descriptor:
                _fadvise(descriptor, 0, 0, _dont_need)

    def map(self) -> Buffer:
        refuse_on_loop()
        if self._view is None:
            with self._in_use() as descriptor:
                if os.fstat(descriptor).st_size == 0:
                    return b""  # an empty mapping is an error to mmap
                self._map = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
                self._view = memoryview(self._map)
        return self._view

    def close(self) -> None:
        with _users_guard:
            if self._is_closed:
                return
            self._is_closed = True
            descriptor = self._take_descriptor_if_unused()
        if self._is_lent and _windows is not None:
            _windows.forget(self)
        if self._map is not None and self._view is not None:
            view, mapping, self._view, self._map = self._view, self._map, None, None
            try:
                view.release()
                mapping.close()
            except BufferError:
                pass  # somebody still holds a slice; the mapping ends with it
        if descriptor is not None:
            os.close(descriptor)

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[int]:
        """The descriptor, which stays open for as long as this lasts."""
        with _users_guard:
            if self._is_closed:
                raise OSError(errno.EBADF, "the file is closed", self._path)
            self._users += 1
        try:
            yield self._descriptor
        finally:
            with _users_guard:
                self._users -= 1
                descriptor = self._take_descriptor_if_unused()
            if descriptor is not None:
                os.close(descriptor)

    def _take_descriptor_if_unused(self) -> int | None:
        if not self._is_closed or self._users or self._descriptor < 0:
            return None
        descriptor, self._descriptor = self._descriptor, -1
        return descriptor


def _sync_descriptor(descriptor: int) -> None:
    if _full_fsync is not None:  # macOS: fsync reaches the drive's cache only
        try:
            fcntl.fcntl(descriptor, _full_fsync)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
    if _fdatasync is not None:
        _fdatasync(descriptor)
    else:
        os.fsync(descriptor)


LATER_MODULES = ("ctypes", "headpond.runtime.lending")
"""Imported at their first use, or ahead of it when the start is over."""


def _lender() -> Windows:
    """Made at the first use: ctypes is no cost of a start."""
    global _windows
    if _windows is None:
        from headpond.runtime.lending import Windows

        _windows = Windows()
    return _windows


def _stop_lending_after(error: OSError) -> None:
    """A system that can't lend is not asked again; one that has no room for another window may have it later."""
    global _can_lend
    from headpond.runtime.lending import NotLending

    _can_lend = not isinstance(error, NotLending)


def _unzeroed(size: int) -> bytearray:
    global _make_buffer
    if _make_buffer is None:
        _make_buffer = posix.uninitialised_bytearray()
    return _make_buffer(size)


def refuse_on_loop() -> None:
    """Nothing slow runs on the loop: this is a bug of the caller, found at once instead of as a latency riddle."""
    if _get_loop() is not None:
        invariant(False, "a blocking file call on the event loop's thread; it belongs into Workers")
