"""Pipes that end when their owner does: no other process gets to hold the owner's ends.

A program that the owner starts does not inherit them (close-on-exec), and a forked child closes them at once. A fork in
another thread waits while a pipe is being opened, so there is no moment at which the child gets an end that it does not
know of.
"""

from __future__ import annotations

import fcntl
import io
import os
import threading

_NUMBER_MIN = 3
"""The numbers below are stdin, stdout and stderr in every child, which overwrite what has such a number. An owner that
was started without one of them (``<&-``, cron, daemons) would get it for a pipe."""

_opening = threading.RLock()  # a signal handler that forks may interrupt its holder


class OwnedPipes:
    """What ``pipe`` opens stays open until ``close``, or until the end of the process."""

    def __init__(self) -> None:
        self._ends: list[io.FileIO] = []

    def pipe(self) -> tuple[io.FileIO, io.FileIO]:
        """The reading and the writing end."""
        with _opening:
            _open.add(self)
            numbers = os.pipe()
            try:
                for number, mode in zip(numbers, "rw", strict=True):
                    self._ends.append(io.FileIO(fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _NUMBER_MIN), mode))
            finally:
                for number in numbers:
                    os.close(number)
            return self._ends[-2], self._ends[-1]

    def close(self) -> None:
        with _opening:
            _open.discard(self)
            while self._ends:
                self._ends.pop().close()


_open: set[OwnedPipes] = set()


def _forked() -> None:
    _opening.release()
    for pipes in list(_open):
        pipes.close()


os.register_at_fork(before=_opening.acquire, after_in_parent=_opening.release, after_in_child=_forked)
