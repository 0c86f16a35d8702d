"""What a simulated disk did, as data: the alphabet of its trace.

Inodes are numbers: a file keeps its number through renames, so that what happens to a name and what happens to content
stay two separate stories, as they are on a real disk.
"""

from __future__ import annotations

from typing import NamedTuple


class Wrote(NamedTuple):
    inode: int
    position: int
    data: bytes

    def __str__(self) -> str:
        return f"write {len(self.data)} bytes at {self.position} of #{self.inode}"


class Truncated(NamedTuple):
    inode: int
    size: int

    def __str__(self) -> str:
        return f"truncate #{self.inode} to {self.size}"


class Created(NamedTuple):
    directory: int
    name: str
    inode: int
    is_directory: bool

    def __str__(self) -> str:
        return f"create {'folder ' if self.is_directory else ''}{self.name} as #{self.inode}"


class Removed(NamedTuple):
    directory: int
    name: str
    inode: int

    def __str__(self) -> str:
        return f"remove {self.name} (#{self.inode})"


class Renamed(NamedTuple):
    source_directory: int
    source_name: str
    directory: int
    name: str
    inode: int

    def __str__(self) -> str:
        return f"rename {self.source_name} to {self.name} (#{self.inode})"


class Synced(NamedTuple):
    inode: int

    def __str__(self) -> str:
        return f"sync #{self.inode}"


class SyncFailed(NamedTuple):
    """Linux marks the pages clean and forgets them (fsyncgate): what was pending never reaches the disk."""

    inode: int

    def __str__(self) -> str:
        return f"sync of #{self.inode} fails"


class DirectorySynced(NamedTuple):
    directory: int

    def __str__(self) -> str:
        return f"sync folder #{self.directory}"


class EverythingSynced(NamedTuple):
    apart: frozenset[int] = frozenset()
    """Files of other file systems."""

    def __str__(self) -> str:
        return "sync everything"


class Rotted(NamedTuple):
    """A bit flips wherever the byte is: no sync is needed for that."""

    inode: int
    position: int
    bit: int

    def __str__(self) -> str:
        return f"bit {self.bit} of byte {self.position} of #{self.inode} rots"


class Marked(NamedTuple):
    """Nothing happened on disk; the test notes what it has been promised so far (an acknowledgement, say)."""

    label: object

    def __str__(self) -> str:
        return f"mark {self.label!r}"


ContentOp = Wrote | Truncated
EntryOp = Created | Removed | Renamed
Op = ContentOp | EntryOp | Synced | SyncFailed | DirectorySynced | EverythingSynced | Rotted | Marked
