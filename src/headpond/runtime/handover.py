"""What threads give to a loop, and what they wait for there: cheap enough for one record at a time.

Handover    a queue from any thread to one loop, which is woken once for all that came in since it looked last
Reply       one answer for one thread: a bare lock, which costs a fifth of ``threading.Event``
Returns     what threads let go of, for the loop to clear up
Waiters     threads that wait until something has moved on

All of it may be used from a signal handler or a finalizer that interrupts another use in the same thread.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from headpond.runtime.loop_thread import LoopThread

T = TypeVar("T")


class Reply(Generic[T]):
    """``give`` or ``fail`` is called once, on any thread; ``wait`` once, on another."""

    __slots__ = ("_came", "_error", "_value")

    def __init__(self) -> None:
        self._value: T | None = None
        self._error: Callable[[], BaseException] | None = None
        self._came = threading.Lock()
        self._came.acquire()

    def give(self, value: T) -> None:
        self._value = value
        self._came.release()

    def fail(self, error: Callable[[], BaseException]) -> None:
        """``error`` makes the exception: in the thread that raises it, so that no two share a traceback."""
        self._error = error
        self._came.release()

    def wait(self) -> T:
        self._came.acquire()
        if self._error is not None:
            raise self._error()
        return self._value  # type: ignore[return-value]  # given, perhaps as None


class Handover(Generic[T]):
    """``take`` is called on the loop when something is there; it calls ``next`` until that is None, now or later."""

    def __init__(self, thread: LoopThread, take: Callable[[], None]) -> None:
        self._thread = thread
        self._take = take
        self._items: deque[T] = deque()
        self._is_open = True
        self._is_due = False  # the loop was woken, and has not looked yet
        self._is_inside = False
        self._guard = threading.RLock()  # the loop never takes it: a thread that is interrupted may hold it for long

    def put(self, *items: T) -> bool:
        """False: it is closed, nothing was taken."""
        with self._guard:
            if not self._is_open:
                return False
            self._items.extend(items)
            # In a signal handler that has interrupted this very call, whoever was to wake the loop waits for us.
            is_nested, self._is_inside = self._is_inside, True
            if is_nested or not self._is_due:
                self._is_due = True
                self._thread.call_soon(self._woken)
            self._is_inside = is_nested
        return True

    def _woken(self) -> None:
        self._is_due = False  # first: what comes in from here on wakes the loop again
        self._take()

    def __len__(self) -> int:
        return len(self._items)

    def peek(self) -> T | None:
        """On the loop: the first, which stays."""
        return self._items[0] if self._items else None

    def next(self) -> T | None:
        """On the loop: the first, which is taken out."""
        return self._items.popleft() if self._items else None

    def close(self) -> None:
        """Nothing comes in any more. What is in stays for ``next``."""
        with self._guard:
            self._is_open = False


class Returns(Generic[T]):
    """What threads let go of, wherever that happens (a finalizer, say): ``undo`` is called for each, on the loop, and
    after ``end`` on whichever thread it is."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], None], undo: Callable[[T], None]) -> None:
        self._call_soon = call_soon
        self._undo = undo
        self._returned: deque[T] = deque()
        self._is_over = False
        self._guard = threading.RLock()

    def put(self, item: T) -> None:
        self._returned.append(item)
        if self._is_over:
            self._settle()
            return
        try:
            self._call_soon(self._settle)
        except RuntimeError:  # the loop is closed: ``end`` is about to be called
            pass

    def _settle(self) -> None:
        with self._guard, contextlib.suppress(IndexError):
            while True:
                self._undo(self._returned.popleft())

    def end(self) -> None:
        """The loop is closed."""
        self._is_over = True
        self._settle()


LOOK_S = 0.5
"""A thread that waits wakes up this often: a signal that comes just before a lock is waited for does not interrupt it,
and Ctrl-C would have no effect until something moves on."""


class Waiters:
    def __init__(self) -> None:
        self._waiting: deque[threading.Lock] = deque()

    def wait(self, is_over: Callable[[], bool], timeout_s: float | None) -> bool:
        """Until ``is_over``, which is asked again after each ``wake``. False: time is up."""
        until_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while True:
            woken = threading.Lock()
            woken.acquire()
            self._waiting.append(woken)  # first, or a wake between the question and this would be missed
            try:
                if is_over():
                    return True
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    return False
                woken.acquire(timeout=min(LOOK_S, left_s))
            finally:
                with contextlib.suppress(ValueError):  # it was woken
                    self._waiting.remove(woken)

    def wake(self) -> None:
        """All that wait. On any thread."""
        with contextlib.suppress(IndexError):
            while True:
                self._waiting.popleft().release()
