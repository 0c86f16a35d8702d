"""Folders that no other user of the machine can look into, put a file into, or exchange for one of theirs.

A name among temporary files is free for every user to take first. So a folder is used only if it is a folder and no
link, is ours, and is closed to others; and only if what it lies in belongs to us or to the system: who may write to a
folder may exchange what is in it, unless its sticky bit is set, as that of the temporary folder is.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NotOurs(OSError):
    """Another user owns the folder or what it lies in, or has access to it."""


def make_private(folder: Path) -> None:
    """Makes the folder, or checks the one that is there. Raises ``NotOurs``; ``OSError`` where none can be made."""
    real_parent = _made(folder.parent)
    for ancestor in (real_parent, *real_parent.parents):
        _check_ancestor(ancestor)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        _check(folder)


def _made(parent: Path) -> Path:
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Path(os.path.realpath(parent))


def _check(folder: Path) -> None:
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise NotOurs(f"{folder} is no folder")
    if found.st_uid != os.getuid():
        raise NotOurs(f"{folder} belongs to another user")
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise NotOurs(f"{folder} is open to other users: its mode should be 0700")


def _check_ancestor(folder: Path) -> None:
    found = os.stat(folder)
    # The owner of the root folder has a number of its own in a container whose root user is nobody outside.
    if found.st_uid not in (0, os.getuid(), os.stat("/").st_uid):
        raise NotOurs(f"{folder} belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        raise NotOurs(f"{folder} can be written to by other users")
