"""Worker processes for long pure-Python work: ``ports.Processes`` of the machine.

Promises    No process before the first job, none after ``idle_s`` without one: an idle broker pays nothing. A process
            does one job at a time. One that dies is noticed at once (``ProcessLost``) and replaced with the next job.
            None outlives the broker: not its stop (``close``), not its kill -9 (the kernel ends it on Linux, the end of
            its pipe elsewhere).
Talk        one step at a time, see ``process_talk``; the other side is ``process_child``.
Imports     The child finds this very package and nothing of the folder that the broker happens to run in: a file there
            that is called ``json.py`` is not its code.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any, TypeVar

from headpond.ports import ProcessLost
from headpond.runtime.process_talk import DONE, FAILED, LENGTH, NEXT, STEP, pack, unpack

T = TypeVar("T")

IDLE_S = 30.0
END_WAIT_S = 2.0
"""A process that was told to end gets this long before it is killed."""
PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# -P: the current folder is not searched. The package's own place is, last: a broker that was started inside a checkout
# (`python -m headpond`) knows it only from that folder.
CHILD = f"""\
import sys
sys.path.append({PACKAGE_PARENT!r})
from headpond.runtime.process_child import main
main()
"""


class WorkerProcesses:
    """``ports.Processes``. Use from one loop only."""

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._idle: dict[_Child, asyncio.TimerHandle] = {}
        self._children: dict[_Child, None] = {}
        self._endings: dict[asyncio.Task[None], None] = {}
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        return [child.pid for child in self._children]

    async def steps(self, function: Callable[..., Iterator[T]], *arguments: Any) -> AsyncGenerator[T, None]:
        child = await self._begin((function, arguments))
        is_free = False
        try:
            while True:
                kind, value = await child.receive()
                if kind == STEP:
                    yield value
                    await child.send(NEXT)
                    continue
                is_free = True
                if kind == FAILED:
                    raise value
                assert kind == DONE
                return
        finally:
            if is_free and not self._is_closed:
                self._keep(child)
            else:  # in the middle of a job that was cancelled
                self._end(child, politely=False)

    async def close(self) -> None:
        """Ends every process; returns when they are gone."""
        self._is_closed = True
        for child in list(self._children):
            self._end(child, politely=child in self._idle)
        if self._endings:
            await asyncio.wait(list(self._endings))

    async def _begin(self, job: object) -> _Child:
        """A process that has the job. One that was idle may have died unnoticed: it has to say that it is there."""
        if self._is_closed:
            raise RuntimeError("closed, takes no more jobs")
        while self._idle:
            child, timer = self._idle.popitem()
            timer.cancel()
            try:
                await child.greet()
                await child.send(job)
                return child
            except ProcessLost:
                self._end(child, politely=False)
            except BaseException:
                self._end(child, politely=False)
                raise
        child = await _Child.start()
        self._children[child] = None
        try:
            await child.send(job)
        except BaseException:
            self._end(child, politely=False)
            raise
        return child

    def _keep(self, child: _Child) -> None:
        loop = asyncio.get_running_loop()
        self._idle[child] = loop.call_later(self._idle_s, lambda: self._end(child, politely=True))

    def _end(self, child: _Child, *, politely: bool) -> None:
        if (timer := self._idle.pop(child, None)) is not None:
            timer.cancel()
        if child in self._children:
            del self._children[child]
            ending = asyncio.get_running_loop().create_task(child.end(politely=politely), name="end worker process")
            self._endings[ending] = None
            ending.add_done_callback(self._endings.pop)


class _Child:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._in = process.stdin
        self._out = process.stdout

    @classmethod
    async def start(cls) -> _Child:
        try:
            return cls(
                await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-P",
                    "-c",
                    CHILD,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
            )
        except OSError as error:
            raise ProcessLost(f"it could not be started: {error}") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    async def greet(self) -> None:
        await self.send(NEXT)
        await self.receive()

    async def send(self, message: object) -> None:
        try:
            self._in.write(pack(message))
            await self._in.drain()
        except (ConnectionError, RuntimeError) as error:
            raise ProcessLost(await self._story()) from error

    async def receive(self) -> tuple[int, Any]:
        try:
            head = await self._out.readexactly(LENGTH.size)
            message: tuple[int, Any] = unpack(await self._out.readexactly(LENGTH.unpack(head)[0]))
            return message
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ProcessLost(await self._story()) from error

    async def end(self, *, politely: bool) -> None:
        self._in.close()  # it ends when it sees that
        if not politely:
            self._kill()
        try:
            await asyncio.wait_for(self._process.wait(), END_WAIT_S)
        except TimeoutError:
            self._kill()
            await self._process.wait()

    def _kill(self) -> None:
        try:
            self._process.kill()
        except ProcessLookupError:
            pass

    async def _story(self) -> str:
        try:
            code = await asyncio.wait_for(self._process.wait(), END_WAIT_S)
        except TimeoutError:
            return "it stopped answering"
        return f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
