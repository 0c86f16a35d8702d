"""The machine's file system: ``ports.FileSystem`` on POSIX calls.

Promises    What ``sync_dir`` and ``sync_all`` returned for survives a power cut, as what a file's ``sync`` did. A file
            that is written atomically is there whole and durable, or as it was.
Files       are regular ones, or links to such: a named pipe or a device is an ``OSError``, never waited for.
On the loop Of what touches the disk only ``leave_note`` may run there; the other calls can wait for a device, and raise
            ``InvariantBroken`` on a thread that runs an event loop.
Elsewhere   macOS has no syncfs.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import threading
from collections.abc import Callable

from headpond.ports import Buffer
from headpond.runtime import posix
from headpond.runtime.disk_file import DiskFile, refuse_on_loop

# Or a named pipe in the place of a file would be waited for, and a terminal would become ours.
_FILE_FLAGS = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_DIRECTORY_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)

_KINDS = {
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}

# POSIX locks belong to the process, and closing *any* descriptor of a file drops them: a second lock in this process
# has to be noticed before the file is opened again.
_locked_files: set[tuple[int, int]] = set()
_locked_files_guard = threading.Lock()


class DiskFileSystem:
    """``ports.FileSystem`` of the machine. Paths are used as given (relative ones from the working directory)."""

    def __init__(self) -> None:
        # Folders under lock, open for as long as that lasts: syncfs tells a descriptor of the failures since it was
        # opened, and of earlier ones only if nobody was told before, be it another broker on the same file system.
        # Two each, for ``sync_all`` and for the process that syncs: of two that share one, only one is told.
        self._roots: dict[str, tuple[int, int]] = {}
        self._roots_guard = threading.Lock()

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, writable: bool = True) -> DiskFile:
        refuse_on_loop()
        flags = _FILE_FLAGS | (os.O_RDWR | os.O_APPEND if writable else os.O_RDONLY)
        if create or exclusive:
            flags |= os.O_CREAT | (os.O_EXCL if exclusive else 0)
        return _opened(path, flags, writable=writable)

    def list_dir(self, path: str) -> list[str]:
        refuse_on_loop()
        return sorted(os.listdir(path))

    def exists(self, path: str) -> bool:
        refuse_on_loop()
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        refuse_on_loop()
        return os.path.isdir(path)

    def file_size(self, path: str) -> int:
        refuse_on_loop()
        found = os.stat(path)
        check_regular(found, path)
        return found.st_size

    def modified_ms(self, path: str) -> int:
        refuse_on_loop()
        return os.stat(path).st_mtime_ns // 1_000_000

    def make_dirs(self, path: str) -> None:
        refuse_on_loop()
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        refuse_on_loop()
        os.replace(source, target)

    def remove(self, path: str) -> None:
        refuse_on_loop()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        refuse_on_loop()
        _remove_tree(path)

    def sync_dir(self, path: str) -> None:
        refuse_on_loop()
        descriptor = os.open(path, _DIRECTORY_FLAGS | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_all(self, path: str) -> bool:
        refuse_on_loop()
        try:
            with self._roots_guard:
                roots = self._roots.get(path)
                descriptor = os.dup(roots[0]) if roots else os.open(path, _DIRECTORY_FLAGS | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                return False  # no failed sync: file by file it needs no descriptor
            raise
        try:
            return posix.syncfs(descriptor)
        finally:
            os.close(descriptor)

    def root_descriptor(self, path: str) -> int | None:
        """Of a folder under lock, for somebody else's syncfs."""
        roots = self._roots.get(path)
        return roots[1] if roots else None

    def read_file(self, path: str) -> bytes:
        file = self.open(path, writable=False)
        try:
            return file.read(0, file.size())
        finally:
            file.close()

    def write_file_atomically(self, path: str, data: Buffer) -> None:
        refuse_on_loop()
        temporary = path + ".tmp"
        file = _opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FILE_FLAGS, writable=True)
        try:
            try:
                file.write(data)
                file.sync()
            finally:
                file.close()
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self.sync_dir(os.path.dirname(path) or ".")

    def leave_note(self, path: str) -> None:
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | _FILE_FLAGS, 0o644))

    def free_bytes(self, path: str) -> int:
        """What an ordinary user may still write: the root user's reserve does not count."""
        refuse_on_loop()
        facts = os.statvfs(path)
        return facts.f_bavail * facts.f_frsize

    def total_bytes(self, path: str) -> int:
        refuse_on_loop()
        facts = os.statvfs(path)
        return facts.f_blocks * facts.f_frsize

    def lock(self, path: str) -> DiskFile | None:
        refuse_on_loop()
        with _locked_files_guard:
            try:
                known = os.stat(path)
            except FileNotFoundError:
                pass
            else:
                if (known.st_dev, known.st_ino) in _locked_files:
                    return None
            file = _lock(path)
        if file is not None:
            self._open_root(os.path.dirname(path) or ".", file)
        return file

    def _open_root(self, path: str, lock: _LockFile) -> None:
        descriptors: list[int] = []

        def close() -> None:
            with self._roots_guard:
                self._roots.pop(path, None)
                for descriptor in descriptors:
                    os.close(descriptor)

        lock.when_closed(close)
        try:
            for _ in range(2):
                descriptors.append(os.open(path, _DIRECTORY_FLAGS | os.O_CLOEXEC))
        except BaseException:
            lock.close()
            raise
        self._roots[path] = (descriptors[0], descriptors[1])


class _LockFile(DiskFile):
    """A file whose lock ends with it."""

    __slots__ = ("_identity", "_on_close")

    def __init__(self, descriptor: int, path: str, identity: tuple[int, int]) -> None:
        super().__init__(descriptor, path, writable=True)
        self._identity = identity
        self._on_close: Callable[[], None] | None = None

    def when_closed(self, callback: Callable[[], None]) -> None:
        self._on_close = callback

    def close(self) -> None:
        with _locked_files_guard:
            if not self._is_closed:
                _locked_files.discard(self._identity)
            super().close()
        if self._on_close is not None:
            on_close, self._on_close = self._on_close, None
            on_close()


def _lock(path: str) -> _LockFile | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _FILE_FLAGS, 0o644)
    try:
        facts = os.fstat(descriptor)
        check_regular(facts, path)
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        identity = (facts.st_dev, facts.st_ino)
        file = _LockFile(descriptor, path, identity)
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return None
        raise
    _locked_files.add(identity)
    return file


def check_regular(found: os.stat_result, path: str) -> None:
    """A pipe would be waited for, a device may have no end, and neither keeps what is written to it."""
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFREG:
        return
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, f"not a regular file, but a {_KINDS.get(kind, 'special file')}", path)


def _opened(path: str, flags: int, *, writable: bool) -> DiskFile:
    descriptor = os.open(path, flags, 0o644)
    try:
        check_regular(os.fstat(descriptor), path)
        os.set_blocking(descriptor, True)  # some file systems of virtual machines give less to one that does not wait
        return DiskFile(descriptor, path, writable=writable)
    except BaseException:
        os.close(descriptor)
        raise


def _remove_tree(path: str) -> None:
    try:
        with os.scandir(path) as entries:
            children = sorted((entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        os.unlink(path)
        return
    for child, is_directory in children:
        if is_directory:
            _remove_tree(child)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(child)
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(path)
