"""The other side of ``processes``: runs in the worker process, one job after the other, until its pipe ends.

It gives way to the broker (nice), ignores Ctrl-C (the broker decides what that means), and speaks on a copy of its
standard output, so that nothing that prints can garble the talk.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import Any, BinaryIO

from headpond.runtime import posix
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.process_talk import DONE, FAILED, LENGTH, NEXT, STEP, pack, unpack

NICENESS = 10
"""On a busy machine the broker's own threads come first."""


def main() -> None:
    parent = os.getppid()
    posix.die_with_parent()
    if os.getppid() != parent:
        return  # it ended before the kernel was told
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        os.nice(NICENESS)
    except OSError:
        pass
    gc.disable()  # nothing here makes cycles, and looking for them in millions of keys takes long
    talk = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, talk)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        pass
    os._exit(0)  # freeing a large map one object after the other would take a second


def serve(commands: BinaryIO, talk: Any) -> None:
    """Raises ``EOFError`` or ``BrokenPipeError`` when there is nobody left to talk to."""
    fs = DiskFileSystem()
    while True:
        job = _receive(commands)
        if job == NEXT:  # are you there?
            _send(talk, DONE, None)
            continue
        function, arguments = job
        try:
            for step in function(fs, *arguments):
                _send(talk, STEP, step)
                _receive(commands)
        except (EOFError, BrokenPipeError):
            raise
        except BaseException as error:
            _send(talk, FAILED, _portable(error))
        else:
            _send(talk, DONE, None)


def _receive(commands: BinaryIO) -> Any:
    head = commands.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    return unpack(commands.read(LENGTH.unpack(head)[0]))


def _send(talk: Any, kind: int, value: object) -> None:
    rest = memoryview(pack((kind, value)))
    while rest:
        rest = rest[talk.write(rest) :]


def _portable(error: BaseException) -> BaseException:
    """An error that can cross the pipe: most can; of the others, their text."""
    try:
        copy = unpack(pack(error)[LENGTH.size :])
        return copy if isinstance(copy, BaseException) else RuntimeError(repr(error))
    except Exception:
        return RuntimeError(repr(error))
