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
