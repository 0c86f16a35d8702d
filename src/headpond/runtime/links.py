"""Symbolic links, for what must be switched from one folder to another at once."""

from __future__ import annotations

import os


def switch_link(path: str, target: str) -> None:
    """``path`` leads to ``target`` from now on; whoever looks meanwhile sees the one or the other."""
    beside = f"{path}.new"
    if os.path.lexists(beside):
        os.unlink(beside)
    os.symlink(target, beside)
    os.replace(beside, path)


def link_target(path: str) -> str | None:
    """Where a link leads, as it was made; None where there is none."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def real_path(path: str) -> str:
    """The one spelling of a path: absolute, without links and ``..``; it need not be there."""
    return os.path.realpath(path)


def is_same_folder(one: str, other: str) -> bool:
    """Whether both are there and are one folder, by whatever names."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
