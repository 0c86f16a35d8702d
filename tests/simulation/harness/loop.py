"""An event loop on virtual time that runs several hosts in one thread, the same way for the same seed.

Lives       Each process of a host is a ``Life`` with a queue of its own. asyncio promises the order of ``call_soon``
            within a loop, so a queue is first in, first out; between processes there is no order, so the seed picks the
            life that runs next. A task belongs to the life that it was made in: a context variable says which.
Time        stands still while anything is ready, then jumps to the next timer.
End         A life that ends is never scheduled again: nothing of it runs, no ``finally`` either. Its coroutines are
            kept until the run is over, since collecting them would run those; garbage collection should be off.
Order       Tasks and futures hash by the number of their making: ``asyncio.wait`` and task groups keep them in sets,
            which would otherwise be ordered by address. ``trace`` is a hash over all events: equal seeds, equal traces.
Errors      What reaches the loop is collected in ``errors``. Nothing ready and no timer is an error of its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import random
import sys
import warnings
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

CLOSES_MAX = 20
T = TypeVar("T")
_life: contextvars.ContextVar[Life] = contextvars.ContextVar("life")


class Stuck(Exception):
    """Nothing is ready and no timer is set, or the virtual time that the run was given is over."""


class Dead(BaseException):
    """Raised inside a life that has just ended, so that the callback that is running stops where it is."""


class LoopError(NamedTuple):
    at_s: float
    life: str
    what: str
    error: BaseException | None


class Life:
    """One process of a host, from its start to its end."""

    def __init__(self, loop: SimulatedLoop, name: str, number: int) -> None:
        self.loop = loop
        self.name = name
        self.number = number
        self.is_over = False
        self.paused_until_s = 0.0
        self.queue: deque[Handle] = deque()
        self.is_listed = False  # among those that have something to do
        self._tasks: list[asyncio.Task[Any]] = []

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Start a task inside this life, from wherever it is called."""
        context = contextvars.copy_context()
        context.run(_life.set, self)
        return self.keep(SimulatedTask(coroutine, loop=self.loop, name=name, context=context))

    def keep(self, task: asyncio.Task[T]) -> asyncio.Task[T]:
        if len(self._tasks) > 256:
            self._tasks = [each for each in self._tasks if not each.done()]
        self._tasks.append(task)
        return task

    def pause(self, seconds: float) -> None:
        """Nothing of it runs for a while, as under SIGSTOP: timers are late, what arrives waits."""
        self.paused_until_s = max(self.paused_until_s, self.loop.time() + seconds)

    def end(self) -> None:
        """kill -9. If it is this life that runs now, whoever calls this should raise ``Dead``."""
        self.is_over = True
        self.queue.clear()

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._tasks if not task.done()]


class Handle:
    """A callback that waits: for its turn, or for its time."""

    __slots__ = ("arguments", "callback", "context", "is_cancelled", "life", "when_s")

    def __init__(
        self,
        life: Life,
        callback: Callable[..., object],
        arguments: tuple[Any, ...],
        context: contextvars.Context | None,
        when_s: float,
    ) -> None:
        self.life = life
        self.callback = callback
        self.arguments = arguments
        self.context = context
        self.when_s = when_s
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self.callback, self.arguments = _nothing, ()

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.when_s


class SimulatedTask(asyncio.Task[T]):
    def __init__(self, coroutine: Coroutine[Any, Any, T], *, loop: SimulatedLoop, **options: Any) -> None:
        self.number = loop.next_number()
        super().__init__(coroutine, loop=loop, **options)

    def __hash__(self) -> int:
        return self.number


class SimulatedFuture(asyncio.Future[Any]):
    def __init__(self, loop: SimulatedLoop) -> None:
        self.number = loop.next_number()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class SimulatedLoop(asyncio.AbstractEventLoop):
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._now_s = 0.0
        self._timers: list[tuple[float, int, Handle]] = []
        self._ready: list[Life] = []
        self._lives: list[Life] = []
        self._numbers = 0
        self.events = 0
        self.trace = 0
        self.errors: list[LoopError] = []
        self.is_over = False
        self.driver = self.new_life("driver")
        self.running = self.driver

    def new_life(self, name: str) -> Life:
        life = Life(self, name, len(self._lives))
        self._lives.append(life)
        return life

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def run(self, main: Coroutine[Any, Any, T], *, until_s: float) -> T:
        """Run until ``main``, a task of the driver's, is done. Raises ``Stuck`` when that can't be, or takes longer."""
        asyncio._set_running_loop(self)
        try:
            task = self.driver.spawn(main, "main")
            while not task.done():
                if self._ready:
                    self._step()
                else:
                    self._wait(until_s)
            return task.result()
        finally:
            self._bury()
            asyncio._set_running_loop(None)

    def call_on(self, life: Life, when_s: float, callback: Callable[..., object], *arguments: Any) -> Handle:
        """A timer of another life's: how the world (network, store, nemesis) reaches a host."""
        handle = Handle(life, callback, arguments, None, when_s)
        heapq.heappush(self._timers, (when_s, self.next_number(), handle))
        return handle

    # --- what asyncio asks of a loop

    def time(self) -> float:
        return self._now_s

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        context = contextvars.copy_context() if context is None else context
        handle = Handle(context.get(_life, self.running), callback, args, context, self._now_s)
        self._push(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        context = contextvars.copy_context() if context is None else context
        handle = Handle(context.get(_life, self.running), callback, args, context, when)
        heapq.heappush(self._timers, (when, self.next_number(), handle))
        return handle

    def create_future(self) -> SimulatedFuture:
        return SimulatedFuture(self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> asyncio.Task[Any]:
        task = SimulatedTask(coro, loop=self, name=name, context=context)
        return _life.get(self.running).keep(task)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._failed(str(context.get("message")), context.get("exception"))

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    # --- turns

    def _push(self, handle: Handle) -> None:
        life = handle.life
        if not life.is_over:
            life.queue.append(handle)
            if not life.is_listed:
                life.is_listed = True
                self._ready.append(life)

    def _wait(self, until_s: float) -> None:
        """Nobody is ready: on to the next timer, and to all that are due at the same moment."""
        timers = self._timers
        if not timers:
            raise Stuck("nothing is ready and no timer is set: this would wait forever")
        when_s = timers[0][0]
        if when_s > until_s:
            raise Stuck(f"not done after {until_s} virtual seconds")
        self._now_s = max(self._now_s, when_s)
        while timers and timers[0][0] <= when_s:
            handle = heapq.heappop(timers)[2]
            if not handle.is_cancelled:
                self._push(handle)

    def _step(self) -> None:
        """One callback of one life that has something to do."""
        ready = self._ready
        index = int(self._chance.random() * len(ready)) if len(ready) > 1 else 0
        life = ready[index]
        if life.paused_until_s > self._now_s and not life.is_over:
            self._unlist(index)
            self.call_on(life, life.paused_until_s, _nothing)
            return
        if not life.queue:
            self._unlist(index)
            return
        handle = life.queue.popleft()
        if handle.is_cancelled:
            return
        self.events += 1
        self.trace = hash((self.trace, life.number, self._now_s))
        self.running = life
        try:
            if handle.context is None:
                handle.callback(*handle.arguments)
            else:
                handle.context.run(handle.callback, *handle.arguments)
        except Dead:
            pass
        except Exception as error:
            self._failed("a callback failed", error)
        finally:
            self.running = self.driver

    def _unlist(self, index: int) -> None:
        life = self._ready[index]
        self._ready[index] = self._ready[-1]
        self._ready.pop()
        life.is_listed = False

    def _failed(self, what: str, error: BaseException | None) -> None:
        if not isinstance(error, asyncio.CancelledError | GeneratorExit | Dead) and not self.running.is_over:
            self.errors.append(LoopError(self._now_s, self.running.name, what, error))

    def _bury(self) -> None:
        """The run is over: nothing is scheduled any more, and what is pending is closed without a word."""
        self.is_over = True
        for life in self._lives:
            life.end()
        errors, self.errors = self.errors, []
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # coroutines that had not begun when their process ended
            for life in self._lives:
                for task in life.pending_tasks():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    _close(task.get_coro())
        sys.unraisablehook = hook
        self._timers.clear()
        self.errors = errors


def _close(coroutine: Any) -> None:
    """What its ``finally`` wants is no longer there, and may be waited for several times."""
    for _ in range(CLOSES_MAX):
        try:
            coroutine.close()
            return
        except BaseException:
            continue


def current_life() -> Life | None:
    """The life that the code that asks belongs to."""
    return _life.get(None)


def _nothing() -> None:
    pass
