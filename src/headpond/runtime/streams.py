"""The three streams of a process, made such that a command may rely on them."""

from __future__ import annotations

import os
import shutil
import sys

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def settle_streams() -> None:
    """Call it first of all.

    A stream that the caller closed (``headpond serve <&-``, some supervisors) leads nowhere from now on: a socket that
    got its number would make libuv abort the process when it is closed. Text that the character set of a terminal lacks
    becomes an escape instead of a traceback; what goes to a file or a pipe is UTF-8, as JSON and records are.
    """
    if any(getattr(sys, name) is None for name, _ in _STREAMS):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass  # the lowest free number is taken: this fills the holes
        os.close(number)
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    # Not there when somebody has put another object in its place.
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None and sys.stdout.encoding.lower() != "utf-8":
        reconfigure(errors="backslashreplace", encoding=None if sys.stdout.isatty() else "utf-8")


def terminal_columns() -> int:
    """``COLUMNS``, or what the terminal says, or 80."""
    return shutil.get_terminal_size().columns
