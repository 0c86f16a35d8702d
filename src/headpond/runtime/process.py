"""The process itself: its loop, its limits, its memory allocator, its signals."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import inspect
import os
import resource
import signal
import stat
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import IO, Any, TypeVar

from headpond.runtime import posix

T = TypeVar("T")

# The interpreter hands its lock over this often when a thread waits for it. A worker that comes back from an fsync
# while the loop is busy waits up to this long; Python's default of 5 ms is longer than the fsync itself. Measured with
# callbacks of 2 ms: answers after 2-4 ms instead of 4-14; with callbacks below 0.3 ms it makes no difference.
SWITCH_INTERVAL_S = 0.0005

# Python looks for cycles when there are so many more objects than at the last look. Parked requests are objects, and
# its default of 700 looked several times in each round of a group commit, at what all partitions hold. The second look
# is at 250,000 objects at most, in some 30 ms: thousands of partitions that are made at once are a million.
GARBAGE_THRESHOLDS = (50_000, 5, 400)


def prepare_process() -> None:
    """What a broker wants from the operating system and the interpreter before it starts: many files, large buffers
    that stay, worker threads that get their turn. Nothing here fails the start."""
    raise_open_file_limit()
    posix.keep_large_buffers()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def started() -> None:
    """What has been made so far stays: never look through it for garbage."""
    gc.freeze()


def raise_open_file_limit() -> int:
    """As many open files as the system allows without asking anybody; returns the limit. A segment costs one to three,
    a connection one: the usual soft limit of 1,024 is for programs of another kind."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS says "unlimited" and then refuses more than its own constant.
    for wanted in (hard, 1_048_576, 65_536, 10_240):
        if wanted == resource.RLIM_INFINITY or (soft != resource.RLIM_INFINITY and wanted <= soft):
            continue
        if hard != resource.RLIM_INFINITY and wanted > hard:
            continue
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
        except (ValueError, OSError):
            continue
    return soft


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop where it can be had, else on asyncio."""
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(main)
    finally:
        if inspect.getcoroutinestate(main) == inspect.CORO_CREATED:  # Ctrl-C was quicker than the loop
            main.close()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def end_after(seconds: float) -> None:
    """The process ends by then, with 0, whatever it waits for: for one whose caller must not wait."""
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()


def on_end_signals(callback: Callable[[str], object]) -> None:
    """For a command, at SIGTERM and SIGHUP (its terminal was closed), with the signal's name. SIGINT is the runner's,
    which cancels and raises ``KeyboardInterrupt``."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, callback, "SIGTERM")
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # else it was started with nohup, to outlive the terminal
        loop.add_signal_handler(signal.SIGHUP, callback, "SIGHUP")


@contextmanager
def told_when_nobody_reads(stream: IO[Any], callback: Callable[[], object]) -> Iterator[None]:
    """Call ``callback`` once, on the running loop, when ``stream`` is a pipe whose last reader has gone. Who writes
    seldom would notice only when it writes."""
    number = stream.fileno()
    is_pipe = stat.S_ISFIFO(os.fstat(number).st_mode)
    # Who may read it is a reader itself, and would be woken by what it has written.
    if not is_pipe or fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY:
        yield
        return
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(number)
        callback()

    loop.add_reader(number, gone)  # nothing ever comes out of this end: it wakes only when the other one is closed
    try:
        yield
    finally:
        loop.remove_reader(number)


def noted_stop_signals() -> Callable[[], str | None]:
    """For a program without a loop that looks now and then: Ctrl-C and SIGTERM interrupt nothing, and the function
    that is returned names the one that has come. A second Ctrl-C is not patient any more."""
    come: list[str] = []

    def note(number: int, frame: object) -> None:
        come.append(signal.Signals(number).name)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)
    return lambda: come[0] if come else None


def on_stop_signals(callback: Callable[[str], None]) -> None:
    """Call ``callback`` with the signal's name, on the running loop, at SIGINT and SIGTERM. A second signal calls it
    again: what impatience means is for the application to say."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, callback, number.name)
