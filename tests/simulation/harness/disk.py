"""A disk in memory that can lose power: ``ports.FileSystem`` with page cache and durable state kept apart.

Crash tests  run the code once on ``SimulatedDisk()``, calling ``mark(...)`` for each promise made; then, for each of
             ``disk.crash_states()``, take ``disk.after(state)``, recover, and check what ``state.marks`` promise.
Simulations  ``power_cut(chance)`` turns this disk into one of the disks that a power cut may leave, ``kill()`` ends
             the process only (the page cache survives), ``kill_back_at(...)`` has it end earlier, in the middle of what
             it did last. All invalidate open files and release locks.
Faults       see ``Faults``. ``before_operation`` is called with each operation before it happens, and may raise.

Blocking calls are refused on a running loop unless ``SimulatedWorkers`` makes them: so does the real file system.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

from headpond.model import invariant
from headpond.ports import Buffer
from simulation.harness import crashes
from simulation.harness.durable import EMPTY_IMAGE, ROOT, DurableState, Image, change_content
from simulation.harness.faults import Faults
from simulation.harness.trace import (
    Created,
    DirectorySynced,
    EverythingSynced,
    Marked,
    Op,
    Removed,
    Renamed,
    Rotted,
    Synced,
    SyncFailed,
    Truncated,
    Wrote,
)
from simulation.harness.workers import inside_worker

TOTAL_BYTES = 1 << 40


class LentCopy:
    """``ports.Lent`` for a simulated socket, which takes its view."""

    def __init__(self, view: memoryview) -> None:
        self.view = view

    def __len__(self) -> int:
        return len(self.view)

    def send_to(self, descriptor: int, at: int) -> int:
        raise BlockingIOError(errno.EAGAIN, "a simulated file has no way into a real socket")


class SimulatedFile:
    """``ports.File`` on a simulated disk."""

    def __init__(self, disk: SimulatedDisk, inode: int, path: str, *, writable: bool) -> None:
        self._disk = disk
        self._inode = inode
        self._path = path
        self._writable = writable
        self._life = disk.life
        self.device = disk.device_of(path)
        self._closed = False
        self._sync_error: OSError | None = None

    def __repr__(self) -> str:
        return f"SimulatedFile({self._path!r}, #{self._inode}{', closed' if self._closed else ''})"

    def write(self, data: Buffer) -> None:
        content = self._content(for_writing=True)
        whole = bytes(data)
        allowed, error = self._disk.faults.admit_write(self._path, len(whole))
        if allowed:
            self._disk.carry_out(Wrote(self._inode, len(content), whole[:allowed]))
        if error is not None:
            raise error

    def read_nowait(self, position: int, size: int) -> Buffer | None:
        content = self._content()
        if self._disk.faults.is_cold(self._path):
            return None
        self._disk.faults.check_read(self._path)
        return bytes(content[position : position + max(size, 0)])

    def lend_nowait(self, position: int, size: int) -> LentCopy | None:
        lent = self.read_nowait(position, size)
        return LentCopy(memoryview(lent)) if lent is not None and len(lent) == size else None

    def read(self, position: int, size: int) -> bytes:
        refuse_on_loop()
        content = self._content()
        self._disk.faults.check_read(self._path)
        self._disk.faults.warm(self._path)
        return bytes(content[position : position + max(size, 0)])

    def size(self) -> int:
        return len(self._content())

    def truncate(self, size: int) -> None:
        refuse_on_loop()
        self._content(for_writing=True)
        self._disk.carry_out(Truncated(self._inode, size))

    def sync(self) -> None:
        refuse_on_loop()
        self._content()
        if self._sync_error is not None:
            raise self._sync_error
        self._sync_error = self._disk.faults.sync_error(self._path)
        if self._sync_error is not None:
            self._disk.carry_out(SyncFailed(self._inode))
            raise self._sync_error
        self._disk.carry_out(Synced(self._inode))
        self._disk.faults.spend_sync(self._path)

    def forget_cached(self) -> None:
        refuse_on_loop()
        content = self._content()
        content[:] = self._disk.on_platter(self._inode)

    def map(self) -> Buffer:
        refuse_on_loop()
        self._disk.faults.check_read(self._path)
        return bytes(self._content())

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._disk.release_lock(self)

    def _content(self, *, for_writing: bool = False) -> bytearray:
        if self._closed or self._life != self._disk.life:
            raise OSError(errno.EBADF, "the file was closed, or its process is gone", self._path)
        if for_writing and not self._writable:
            raise OSError(errno.EBADF, "opened for reading only", self._path)
        return self._disk.content_of(self._inode)


class SimulatedDisk:
    """``ports.FileSystem`` in memory. Paths are ``/a/b`` or ``a/b``, which is the same."""

    def __init__(self, image: Image = EMPTY_IMAGE, *, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.faults = Faults()
        self.life = 1  # of the process; files of a former life are dead
        self.before_operation: Callable[[Op], None] | None = None
        self._now_ms = now_ms
        self._mounts: list[str] = []
        self._next_inode = ROOT + 1
        self._modified_ms: dict[int, int] = {}
        self._power_on(image)

    def _power_on(self, image: Image) -> None:
        self.base = image
        self.trace: list[Op] = []
        self.keeps_trace = True  # a long simulation turns it off
        self._durable = DurableState(image)
        self._files = {inode: bytearray(content) for inode, content in image.files.items()}
        self._directories = {inode: dict(entries) for inode, entries in image.directories.items()}
        self._devices: dict[int, int] = {}  # of the files that were opened
        self._locks: dict[int, SimulatedFile] = {}
        self._next_inode = max([self._next_inode, *(n + 1 for n in self._files), *(n + 1 for n in self._directories)])

    # --- for tests and simulators -------------------------------------------------------------------------------------

    def mark(self, label: object) -> None:
        """Note a promise in the trace; crash states say which marks came before them."""
        self.carry_out(Marked(label))

    def crash_states(self, **options: Any) -> Iterator[crashes.CrashState]:
        """See ``crashes.crash_states``."""
        invariant(self.keeps_trace, "crash states need the trace")
        return crashes.crash_states(self.base, tuple(self.trace), **options)

    def after(self, state: crashes.CrashState) -> SimulatedDisk:
        """A fresh disk as that power cut left it."""
        disk = SimulatedDisk(state.image, now_ms=self._now_ms)
        disk._modified_ms.update(self._modified_ms)
        return disk

    def power_cut(self, chance: random.Random) -> None:
        keeps_trace = self.keeps_trace
        self.life += 1
        self._power_on(crashes.random_image(self._durable, chance))
        self.keeps_trace = keeps_trace

    def kill(self) -> None:
        """kill -9: the kernel lives on, and so does everything written."""
        self.life += 1
        self._locks.clear()

    def kill_back_at(self, operations: int) -> None:
        """kill -9 after so many operations of the trace: the later ones never happened."""
        invariant(self.keeps_trace, "going back needs the trace")
        kept = self.trace[:operations]
        self.life += 1
        self._power_on(self.base)
        for op in kept:
            if isinstance(op, Created):
                self._make_inode(op.inode, is_directory=op.is_directory)
            self.carry_out(op)

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """Bit rot: on the platter and in memory at once, behind everybody's back."""
        self.carry_out(Rotted(self._file_inode(path), position, bit))

    def contents(self, path: str) -> bytes:
        """What a reader sees now, without faults."""
        return bytes(self._files[self._file_inode(path)])

    def paths(self) -> list[str]:
        """Of all files, sorted."""
        found: list[str] = []

        def visit(path: str, inode: int) -> None:
            for name, child in self._directories[inode].items():
                if child in self._directories:
                    visit(f"{path}/{name}", child)
                else:
                    found.append(f"{path}/{name}")

        visit("", ROOT)
        return sorted(found)

    def durable_image(self) -> Image:
        """What is sure to survive a power cut."""
        return self._durable.image()

    def mount(self, path: str) -> None:
        """From now on another file system begins there, which a sync of everything elsewhere does not cover."""
        self._mounts.append(path)

    def device_of(self, path: str) -> int:
        return next((number for number, at in enumerate(self._mounts, 1) if f"{path}/".startswith(f"{at}/")), 0)

    # --- FileSystem ---------------------------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, writable: bool = True) -> SimulatedFile:
        refuse_on_loop()
        parent, name = self._parent(path)
        inode = self._directories[parent].get(name)
        if inode is None:
            if not (create or exclusive):
                raise _missing(path)
            inode = self._create(parent, name, is_directory=False)
        elif exclusive:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        elif inode in self._directories:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        file = SimulatedFile(self, inode, path, writable=writable)
        self._devices[inode] = file.device
        return file

    def list_dir(self, path: str) -> list[str]:
        refuse_on_loop()
        return sorted(self._directories[self._directory_inode(path)])

    def exists(self, path: str) -> bool:
        refuse_on_loop()
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        refuse_on_loop()
        return self._find(path) in self._directories

    def file_size(self, path: str) -> int:
        refuse_on_loop()
        return len(self._files[self._file_inode(path)])

    def modified_ms(self, path: str) -> int:
        refuse_on_loop()
        inode = self._find(path)
        if inode is None:
            raise _missing(path)
        return self._modified_ms.get(inode, 0)

    def make_dirs(self, path: str) -> None:
        refuse_on_loop()
        here = ROOT
        for name in _names(path):
            inode = self._directories[here].get(name)
            if inode is None:
                inode = self._create(here, name, is_directory=True)
            elif inode not in self._directories:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            here = inode

    def rename(self, source: str, target: str) -> None:
        refuse_on_loop()
        source_parent, source_name = self._parent(source)
        parent, name = self._parent(target)
        inode = self._directories[source_parent].get(source_name)
        if inode is None:
            raise _missing(source)
        replaced = self._directories[parent].get(name)
        if replaced is not None and replaced != inode:
            if (replaced in self._directories) != (inode in self._directories):
                code = errno.EISDIR if replaced in self._directories else errno.ENOTDIR
                raise OSError(code, os.strerror(code), target)
            if self._directories.get(replaced):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), target)
        if replaced != inode:
            self.carry_out(Renamed(source_parent, source_name, parent, name, inode))

    def remove(self, path: str) -> None:
        refuse_on_loop()
        parent, name = self._parent(path)
        inode = self._directories[parent].get(name)
        if inode is None:
            return
        if inode in self._directories:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self.carry_out(Removed(parent, name, inode))

    def remove_tree(self, path: str) -> None:
        refuse_on_loop()
        inode = self._find(path)
        if inode is None:
            return
        for name in sorted(self._directories.get(inode, ())):
            self.remove_tree(f"{path}/{name}")
        parent, own_name = self._parent(path)
        self.carry_out(Removed(parent, own_name, inode))

    def sync_dir(self, path: str) -> None:
        refuse_on_loop()
        inode = self._directory_inode(path)
        error = self.faults.sync_error(path)
        if error is not None:
            raise error
        self.carry_out(DirectorySynced(inode))

    def sync_all(self, path: str) -> bool:
        refuse_on_loop()
        if self._find(path) is None:
            raise _missing(path)
        if not self.faults.has_sync_all:
            return False
        error = self.faults.sync_error(path)
        if error is not None:
            for inode in list(self._files):
                self.carry_out(SyncFailed(inode))
            raise error
        device = self.device_of(path)
        self.carry_out(EverythingSynced(frozenset(n for n in self._files if self._devices.get(n, 0) != device)))
        return True

    def read_file(self, path: str) -> bytes:
        refuse_on_loop()
        content = self._files[self._file_inode(path)]
        self.faults.check_read(path)
        return bytes(content)

    def write_file_atomically(self, path: str, data: Buffer) -> None:
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        try:
            try:
                file.truncate(0)
                file.write(data)
                file.sync()
            finally:
                file.close()
            self.rename(temporary, path)
        except OSError:
            self.remove(temporary)
            raise
        self.sync_dir(path.rpartition("/")[0] or "/")

    def leave_note(self, path: str) -> None:
        parent, name = self._parent(path)
        if name not in self._directories[parent]:
            self._create(parent, name, is_directory=False)

    def free_bytes(self, path: str) -> int:
        refuse_on_loop()
        return TOTAL_BYTES if self.faults.space_bytes is None else self.faults.space_bytes

    def total_bytes(self, path: str) -> int:
        refuse_on_loop()
        return TOTAL_BYTES

    def lock(self, path: str) -> SimulatedFile | None:
        file = self.open(path, create=True)
        inode = self._file_inode(path)
        if inode in self._locks:
            return None
        self._locks[inode] = file
        return file

    # --- for SimulatedFile --------------------------------------------------------------------------------------------

    def content_of(self, inode: int) -> bytearray:
        return self._files[inode]

    def on_platter(self, inode: int) -> bytes:
        """What the device will hold of a file when everything pending has been written."""
        return self._durable.content_of(inode)

    def release_lock(self, file: SimulatedFile) -> None:
        for inode, holder in list(self._locks.items()):
            if holder is file:
                del self._locks[inode]

    def carry_out(self, op: Op) -> None:
        """The one place where the disk changes."""
        if self.before_operation is not None:
            self.before_operation(op)
        self.faults.spend_time(op)
        self._record(op)
        match op:
            case Wrote() | Truncated():
                change_content(self._files[op.inode], op)
                self._modified_ms[op.inode] = self._now_ms()
            case Rotted():
                self._files[op.inode][op.position] ^= 1 << op.bit
            case Created():
                self._directories[op.directory][op.name] = op.inode
            case Removed():
                del self._directories[op.directory][op.name]
                self._directories.pop(op.inode, None)  # a file's content stays: somebody may have it open
            case Renamed():
                del self._directories[op.source_directory][op.source_name]
                self._directories[op.directory][op.name] = op.inode

    def _record(self, op: Op) -> None:
        if self.keeps_trace:
            self.trace.append(op)
        self._durable.apply(op)

    # --- paths --------------------------------------------------------------------------------------------------------

    def _create(self, parent: int, name: str, *, is_directory: bool) -> int:
        inode, self._next_inode = self._next_inode, self._next_inode + 1
        self._make_inode(inode, is_directory=is_directory)
        self.carry_out(Created(parent, name, inode, is_directory))
        return inode

    def _make_inode(self, inode: int, *, is_directory: bool) -> None:
        if is_directory:
            self._directories[inode] = {}
        else:
            self._files[inode] = bytearray()
        self._modified_ms[inode] = self._now_ms()

    def _find(self, path: str) -> int | None:
        here: int | None = ROOT
        for name in _names(path):
            if here not in self._directories:
                return None
            here = self._directories[here].get(name)
        return here

    def _parent(self, path: str) -> tuple[int, str]:
        *folders, name = _names(path)
        inode = self._find("/".join(folders))
        if inode is None:
            raise _missing(path)
        if inode not in self._directories:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return inode, name

    def _file_inode(self, path: str) -> int:
        inode = self._find(path)
        if inode is None:
            raise _missing(path)
        if inode in self._directories:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return inode

    def _directory_inode(self, path: str) -> int:
        inode = self._find(path)
        if inode is None:
            raise _missing(path)
        if inode not in self._directories:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return inode


def refuse_on_loop() -> None:
    if asyncio._get_running_loop() is not None and not inside_worker():
        invariant(False, "a blocking file call on the event loop's thread; it belongs into Workers")


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
