"""``python -m headpond.testing.guarded LIFELINE FOLDER ARGUMENT...``: the command ``headpond ARGUMENT...`` in a process
that ends with the one that owns it, by itself, even when its guard was killed (``guard.py``).

LIFELINE is the number of a pipe's reading end. Only the owner holds the other end: the pipe ends when the owner does.
A thread waits for that. Then the process becomes a shell: every other thread is gone at that moment, and the listening
sockets are closed. The shell removes FOLDER ("": none) and kills the process group, itself included.

It imports nothing that ``python -m`` has not, but the thread and its signals: a broker starts with it.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading

SHELL = "/bin/sh"

# A process that is about to end may still make a file, hence the attempts.
REMOVE = """
[ -z "$1" ] || for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$1" 2>/dev/null
    [ -e "$1" ] || break
    sleep 0.1
done
"""
_LAST_ACT = REMOVE + 'kill -s KILL -- "-$$"\n'


def main() -> None:
    lifeline, folder = int(sys.argv[1]), sys.argv[2]
    del sys.argv[1:3]
    os.set_inheritable(lifeline, False)
    threading.Thread(target=_end_with_owner, args=(lifeline, folder), name="lifeline", daemon=True).start()
    runpy.run_module("headpond", run_name="__main__", alter_sys=True)


def _end_with_owner(lifeline: int, folder: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
    os.read(lifeline, 1)  # is never written to: returns at its end
    try:
        os.chdir("/")
        os.execv(SHELL, [SHELL, "-c", _LAST_ACT, "headpond-guard", folder])
    finally:
        os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
