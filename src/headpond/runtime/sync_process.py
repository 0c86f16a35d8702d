"""Syncs in a process of their own: ``ports.Syncer`` of the machine.

A thread that syncs needs the interpreter before and after, and so takes it from the loop twice per sync: with hundreds
of syncs a second that is felt (docs/decisions/0006). This process is handed the open files themselves and answers over
a socket that the loop reads like any other.

Promises    No process before syncs are frequent: a broker that is little used has none. A file is synced through the
            very description that it was written through, so that the kernel's report of a failed write reaches us.
            A process that dies with a sync under way is a failed sync: what the kernel told it, nobody else will hear.
            It ends when the broker does, however that ends.
Where       Linux. Elsewhere, and where it can't be started, the workers go on.
"""

from __future__ import annotations

import array
import asyncio
import errno
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from headpond.ports import File, Workers
from headpond.runtime import posix, sync_child
from headpond.runtime.disk_file import DiskFile
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.sync_child import ANSWER, FILES_MAX, NOT_DONE, READY, REQUEST

_log = logging.getLogger(__name__)
_Done = Callable[[float | None, BaseException | None], None]
_Child = tuple[subprocess.Popen[bytes], socket.socket]

FREQUENT_PER_S = 100
"""So many syncs within a second start the process."""
END_WAIT_S = 2.0


class SyncProcess:
    """``ports.Syncer``. Use from one loop only."""

    def __init__(self, fs: DiskFileSystem, workers: Workers, *, frequent_per_s: int = FREQUENT_PER_S) -> None:
        self._fs = fs
        self._workers = workers
        self._frequent_per_s = frequent_per_s
        self._is_possible = sys.platform.startswith("linux")
        self._second = 0.0
        self._seen = 0  # in that second
        self._process: subprocess.Popen[bytes] | None = None
        self._talk: socket.socket | None = None
        self._is_ready = False
        self._starting: asyncio.Future[None] | None = None
        self._jobs: dict[int, tuple[Sequence[File], str | None, _Done]] = {}
        self._number = READY

    @property
    def pid(self) -> int | None:
        """None: there is no process that syncs are handed to."""
        return self._process.pid if self._is_ready and self._process is not None else None

    def offer(self, files: Sequence[File], folder: str | None, done: _Done) -> bool:
        if not self._is_ready:
            self._look_how_frequent()
            return False
        descriptors = self._descriptors(files, folder)
        if descriptors is None:
            return False
        assert self._talk is not None
        number = self._number + 1
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        try:
            self._talk.sendmsg([REQUEST.pack(number, len(descriptors), folder is not None)], [rights])
        except OSError:  # its answers are behind, or it has gone, which the reader is about to learn
            return False
        self._number = number
        self._jobs[number] = files, folder, done
        return True

    def look(self) -> None:
        while self._is_ready and self._answered():
            pass

    async def close(self) -> None:
        """Returns when the process is gone."""
        self._is_possible = self._is_ready = False
        if self._starting is not None:
            await self._starting
        if self._talk is not None:
            self._hang_up()
        if self._process is not None:
            await self._workers.run(_end, self._process)

    # --- handing over

    def _descriptors(self, files: Sequence[File], folder: str | None) -> list[int] | None:
        """What to hand over; None: these are for the workers."""
        if folder is not None:
            root = self._fs.root_descriptor(folder)
            return None if root is None or not posix.has_syncfs() else [root]
        if not 0 < len(files) <= FILES_MAX:
            return None
        descriptors = [file.descriptor for file in files if isinstance(file, DiskFile)]
        return descriptors if len(descriptors) == len(files) and min(descriptors) >= 0 else None

    def _answered(self) -> bool:
        """False: there is no answer now."""
        assert self._talk is not None
        try:
            answer = self._talk.recv(ANSWER.size)
        except BlockingIOError:
            return False
        except OSError:
            answer = b""
        if not answer:
            self._lost()
            return False
        number, failure, took_s = ANSWER.unpack(answer)
        if number == READY:
            self._is_ready = True
            return True
        files, folder, done = self._jobs.pop(number)
        if failure == NOT_DONE:
            self._workers.submit(partial(_sync, self._fs, files, folder), done)
        elif failure:
            done(None, OSError(failure, os.strerror(failure)))
        else:
            done(took_s, None)
        return True

    def _lost(self) -> None:
        self._is_possible = self._is_ready = False
        self._hang_up()
        _log.error("the process that syncs has ended; syncs go on in threads")
        jobs, self._jobs = self._jobs, {}
        for _, _, done in jobs.values():
            done(None, OSError(errno.EIO, "the process that synced it has died, and with it what the kernel said"))

    def _hang_up(self) -> None:
        assert self._talk is not None
        asyncio.get_running_loop().remove_reader(self._talk.fileno())
        self._talk.close()
        self._talk = None

    # --- starting

    def _look_how_frequent(self) -> None:
        if not self._is_possible:
            return
        now = time.monotonic()
        if now - self._second >= 1.0:
            self._second, self._seen = now, 0
        self._seen += 1
        if self._seen >= self._frequent_per_s:
            self._is_possible = False  # one try
            self._starting = asyncio.get_running_loop().create_future()
            self._workers.submit(_start, self._started)

    def _started(
        self, child: tuple[subprocess.Popen[bytes], socket.socket] | None, error: BaseException | None
    ) -> None:
        assert self._starting is not None
        self._starting.set_result(None)
        if child is None:
            _log.warning("no process for syncs, they go on in threads: %s", error)
            return
        self._process, self._talk = child
        asyncio.get_running_loop().add_reader(self._talk.fileno(), self._answered)


def _sync(fs: DiskFileSystem, files: Sequence[File], folder: str | None) -> float:
    """Blocking: here after all."""
    started_s = time.monotonic()
    if folder is None or not fs.sync_all(folder):
        for file in files:
            file.sync()
    return time.monotonic() - started_s


def _start() -> _Child:
    """Blocking."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        ours.setblocking(False)
        command = [sys.executable, "-I", "-S", sync_child.__file__, str(theirs.fileno())]
        process = subprocess.Popen(
            command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


def _end(process: subprocess.Popen[bytes]) -> None:
    """Blocking. The process ends by itself when its socket is closed."""
    try:
        process.wait(END_WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
