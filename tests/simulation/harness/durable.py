"""What a simulated disk would still have after a power cut: the durable part, and what is pending on top of it.

The rules are the pessimistic ones of POSIX, not the kinder ones of a particular file system (ALICE, OSDI 2014):

* content is durable after ``sync`` of the file; until then any subset of its writes and truncations may be there;
* a name (creation, rename, removal) is durable after ``sync_dir`` of its folder, however often the file was synced;
  until then any subset of the folder's changes may be there; a rename is all or nothing, and its target's folder's;
* what was pending when a sync failed is lost for good.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from simulation.harness.trace import (
    ContentOp,
    Created,
    DirectorySynced,
    EntryOp,
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

ROOT = 1

# The kernel writes dirty pages back on its own after half a minute; a long simulation relies on that to stay small.
PENDING_PER_FILE_MAX = 4_096


class Image(NamedTuple):
    """A tree that is wholly durable: a disk as found at power-on."""

    files: Mapping[int, bytes]
    directories: Mapping[int, Mapping[str, int]]


EMPTY_IMAGE = Image(files={}, directories={ROOT: {}})


class PendingContent(NamedTuple):
    """A change of content that a power cut may undo."""

    sequence: int
    op: ContentOp


class PendingEntry(NamedTuple):
    """A change of names that a power cut may undo."""

    sequence: int
    op: EntryOp


Pending = PendingContent | PendingEntry


class DurableState:
    """Folds a trace, operation by operation."""

    def __init__(self, image: Image = EMPTY_IMAGE) -> None:
        self._files = {inode: bytearray(content) for inode, content in image.files.items()}
        self._directories = {inode: dict(entries) for inode, entries in image.directories.items()}
        self._content_ops: dict[int, list[PendingContent]] = {}
        self._entry_ops: list[PendingEntry] = []
        self._sequence = 0

    def apply(self, op: Op) -> None:
        self._sequence += 1
        match op:
            case Wrote() | Truncated():
                self._add_content_op(op)
            case Created():
                if op.is_directory:
                    self._directories[op.inode] = {}
                else:
                    self._files[op.inode] = bytearray()
                self._entry_ops.append(PendingEntry(self._sequence, op))
            case Removed() | Renamed():
                self._entry_ops.append(PendingEntry(self._sequence, op))
            case Synced():
                self._settle_content(op.inode)
            case SyncFailed():
                self._content_ops.pop(op.inode, None)
            case DirectorySynced():
                self._settle_entries(op.directory)
            case EverythingSynced():
                for inode in [inode for inode in self._content_ops if inode not in op.apart]:
                    self._settle_content(inode)
                self._settle_entries(None)
            case Rotted():
                self._rot(op)
            case Marked():
                pass

    def pending(self) -> list[Pending]:
        """Everything that a power cut may undo, in the order in which it happened."""
        found: list[Pending] = [pending for ops in self._content_ops.values() for pending in ops]
        found.extend(self._entry_ops)
        found.sort(key=lambda pending: pending.sequence)
        return found

    def image(self, kept: Collection[int] = (), torn: Mapping[int, Wrote] | None = None) -> Image:
        """The disk after a power cut that kept the pending operations with these sequence numbers; ``torn`` replaces a
        kept write by what reached the platter of it."""
        directories = {inode: dict(entries) for inode, entries in self._directories.items()}
        for sequence, op in self._entry_ops:
            if sequence in kept:
                _change_entries(directories, op)
        reachable = _reachable(directories)
        files = {inode: self._content_with(inode, kept, torn or {}) for inode in sorted(reachable & self._files.keys())}
        return Image(files, {inode: directories[inode] for inode in sorted(reachable & directories.keys())})

    def content_of(self, inode: int) -> bytes:
        """A file when all that is pending for it has reached the disk."""
        return self._content_with(inode, {sequence for sequence, _ in self._content_ops.get(inode, ())}, {})

    def _content_with(self, inode: int, kept: Collection[int], torn: Mapping[int, Wrote]) -> bytes:
        content = bytearray(self._files[inode])
        for sequence, op in self._content_ops.get(inode, ()):
            if sequence in kept:
                change_content(content, torn.get(sequence, op))
        return bytes(content)

    def _add_content_op(self, op: Wrote | Truncated) -> None:
        if op.inode not in self._files:
            return  # removed for good, but still open somewhere
        ops = self._content_ops.setdefault(op.inode, [])
        ops.append(PendingContent(self._sequence, op))
        if len(ops) > PENDING_PER_FILE_MAX:
            change_content(self._files[op.inode], ops.pop(0).op)

    def _rot(self, op: Rotted) -> None:
        durable = self._files.get(op.inode)
        if durable is None:
            return
        if op.position < len(durable):
            durable[op.position] ^= 1 << op.bit
        ops = self._content_ops.get(op.inode, [])
        for index, (sequence, pending) in enumerate(ops):
            at = op.position - pending.position if isinstance(pending, Wrote) else -1
            if isinstance(pending, Wrote) and 0 <= at < len(pending.data):
                data = bytearray(pending.data)
                data[at] ^= 1 << op.bit
                ops[index] = PendingContent(sequence, Wrote(op.inode, pending.position, bytes(data)))

    def _settle_content(self, inode: int) -> None:
        for _, op in self._content_ops.pop(inode, ()):
            change_content(self._files[inode], op)

    def _settle_entries(self, directory: int | None) -> None:
        """Make a folder's changes durable (all folders' for None), and forget what nothing can lead to any more."""
        later: list[PendingEntry] = []
        dropped: list[int] = []
        for pending in self._entry_ops:
            if directory is None or pending.op.directory == directory:
                dropped.extend(_change_entries(self._directories, pending.op))
            else:
                later.append(pending)
        self._entry_ops = later
        for inode in dropped:
            self._files.pop(inode, None)
            self._directories.pop(inode, None)
            self._content_ops.pop(inode, None)


def change_content(content: bytearray, op: ContentOp) -> None:
    """A write beyond the end leaves a hole of zeros, as on a real disk."""
    if isinstance(op, Truncated):
        if op.size <= len(content):
            del content[op.size :]
        else:
            content.extend(bytes(op.size - len(content)))
        return
    if op.position > len(content):
        content.extend(bytes(op.position - len(content)))
    content[op.position : op.position + len(op.data)] = op.data


def _change_entries(directories: dict[int, dict[str, int]], op: EntryOp) -> list[int]:
    """Apply a change of names; returns the inodes that lost theirs. A folder that is gone swallows its changes."""
    dropped: list[int] = []
    match op:
        case Created():
            if op.directory in directories:
                directories[op.directory][op.name] = op.inode
        case Removed():
            if directories.get(op.directory, {}).get(op.name) == op.inode:
                del directories[op.directory][op.name]
                dropped.append(op.inode)
        case Renamed():
            if directories.get(op.source_directory, {}).get(op.source_name) == op.inode:
                del directories[op.source_directory][op.source_name]
            if op.directory in directories:
                replaced = directories[op.directory].get(op.name)
                if replaced is not None and replaced != op.inode:
                    dropped.append(replaced)
                directories[op.directory][op.name] = op.inode
    return dropped


def _reachable(directories: Mapping[int, Mapping[str, int]]) -> set[int]:
    found = {ROOT}
    unvisited = [ROOT]
    while unvisited:
        for inode in directories.get(unvisited.pop(), {}).values():
            if inode not in found:
                found.add(inode)
                unvisited.append(inode)
    return found
