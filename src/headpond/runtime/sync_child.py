"""The other side of ``sync_process``: syncs what it is handed, until nobody is left to hand it anything.

A script of its own, run by its path: it imports nothing of the package and so starts in a few milliseconds and takes
a few megabytes. Every thread waits at the same socket; the kernel gives each message to one of them.
"""

from __future__ import annotations

import array
import errno
import os
import signal
import socket
import struct
import sys
import threading
import time
from functools import cache
from typing import Any

THREADS = 4
FILES_MAX = 64
REQUEST = struct.Struct("<QB?")  # the job's number, how many files ride along, whether their whole file system is meant
ANSWER = struct.Struct("<Qid")  # the job's number, the error or 0, how long it took
READY = 0
"""The number of the unsolicited first answer: the process is ready."""
NOT_DONE = -1
"""The error when the files did not arrive, for want of descriptors: nothing was synced, and nothing has failed."""
SLICE_NS = 100_000
SCHED_ATTRIBUTES = struct.Struct("<IIQiIQQQ")  # size, policy, flags, nice, priority, runtime, deadline, period
SCHED_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}  # sched_setattr, sched_getattr


def main() -> None:
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Terminals and service managers send these to the broker and to everything below it. What they mean is the
        # broker's to decide; it may have a lot to sync before it goes.
        signal.signal(ending, signal.SIG_IGN)
    ask_for_short_slices()
    talk = socket.socket(fileno=int(sys.argv[1]))
    for _ in range(THREADS - 1):
        threading.Thread(target=serve, args=(talk,), daemon=True).start()
    talk.send(ANSWER.pack(READY, 0, 0.0))
    serve(talk)


def ask_for_short_slices() -> None:
    """For this thread and those it starts, which sync a lot and compute next to nothing. Linux 6.12 and later let
    whoever asks for little go before those who are at something long; on busy processors a sync would wait for them,
    when it is handed over and when it has returned. Where it is unknown or forbidden, it does."""
    calls = SCHED_CALLS.get(os.uname().machine)
    if calls is None or sys.maxsize < 2**32:  # a program of 32 bits has other numbers
        return
    set_attributes, get_attributes = calls
    try:
        import ctypes

        system_call = _libc().syscall
    except (ImportError, OSError):
        return
    attributes = ctypes.create_string_buffer(SCHED_ATTRIBUTES.size)
    if system_call(get_attributes, 0, attributes, len(attributes), 0) == 0:
        size, policy, flags, nice, priority, _, *rest = SCHED_ATTRIBUTES.unpack(attributes)
        system_call(set_attributes, 0, SCHED_ATTRIBUTES.pack(size, policy, flags, nice, priority, SLICE_NS, *rest), 0)


def serve(talk: socket.socket) -> None:
    while True:
        try:
            message, rights, _, _ = talk.recvmsg(REQUEST.size, socket.CMSG_SPACE(FILES_MAX * 4))
        except OSError:
            message = b""  # it has gone with answers that it had not read
        if not message:
            os._exit(0)  # the broker has gone
        number, count, is_everything = REQUEST.unpack(message)
        descriptors = array.array("i")
        for _, _, data in rights:
            descriptors.frombytes(data)
        started_s = time.monotonic()
        failure = sync(descriptors, is_everything=is_everything) if len(descriptors) == count else NOT_DONE
        took_s = time.monotonic() - started_s
        for descriptor in descriptors:
            os.close(descriptor)
        try:
            talk.send(ANSWER.pack(number, failure, took_s))
        except OSError:
            os._exit(0)  # the broker has gone meanwhile


def sync(descriptors: array.array[int], *, is_everything: bool) -> int:
    """0, or the error's number."""
    try:
        for descriptor in descriptors:
            if is_everything:
                syncfs(descriptor)
            else:
                os.fdatasync(descriptor)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def syncfs(descriptor: int) -> None:
    import ctypes  # not at the broker's start, which imports this file for its constants

    if _libc().syncfs(descriptor) != 0:
        raise OSError(ctypes.get_errno(), "syncfs")


@cache
def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, ConnectionResetError):
        os._exit(0)
