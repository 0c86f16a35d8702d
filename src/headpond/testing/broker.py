"""A real broker for tests: ``headpond serve`` as a child process, on a free port, with an empty data folder.

    with Broker() as broker:
        broker.create_topic("orders", partitions=3)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

Nothing is left of it when the block ends, nor when the process that runs the tests is killed: see ``guard``. What the
broker says goes to files in its folder; an error of ours quotes it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

from headpond.testing.command import headpond_environment
from headpond.testing.errors import BrokerFailed, StartFailed
from headpond.testing.guard import Guard
from headpond.testing.values import as_text

if TYPE_CHECKING:
    from headpond.testing.sendable import Sendable, StoredRecord

__tracebackhide__ = True  # a failure points at the line of the test
HOST = "127.0.0.1"
DEADLINE_S = 30.0
"""Long enough for a loaded machine: reaching it means that what is waited for will not come."""
PORT_BACK_S = 5.0
"""A restart wants its port back, which for a moment may be another's: a client that keeps calling a port in the range
from which callers get theirs can, on loopback, end up connected to itself."""
_LOOK_S = 0.003

_READY = re.compile(r"listening on (?:\[?[\w.:]*?\]?):(\d+)\b")


class Broker:
    """Not started before the ``with`` block begins or ``start`` is called; may be stopped and started again.

    settings    broker settings by their names, as for ``headpond serve --set``
    folder      keep data and logs there, to look at them afterwards; None: a temporary folder that goes away
    port        0: a free one
    arguments   more arguments of ``headpond serve``
    env         more variables for it; the caller's own HEADPOND_* variables don't reach it

    ``DEFAULTS`` are weaker than a setting that is given in any of these ways. A settings file of the caller's
    (``arguments=["--config", ...]``) takes their place.
    """

    DEFAULTS: ClassVar[Mapping[str, object]] = {"log.retention.ms": -1, "group.initial.rebalance.delay.ms": 0}
    """Where tests want something else than Kafka's defaults. Records with timestamps of long ago stay: a retention of a
    week would remove them in the middle of a run. A group's first member does not wait 3 s for others to join."""

    def __init__(
        self,
        *,
        settings: Mapping[str, object] | None = None,
        folder: str | os.PathLike[str] | None = None,
        port: int = 0,
        arguments: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.settings = dict(settings or {})
        self.arguments = list(arguments)
        self.env = dict(env or {})
        self.host = HOST
        self.port = port
        self._wanted_port = port
        self._has_port = False  # it was ours at the last start, and is wanted back at the next
        self._kept_folder = None if folder is None else Path(folder).absolute()
        self._folder = self._kept_folder
        self._guard: Guard | None = None
        self._process: subprocess.Popen[bytes] | None = None  # None: never started, or stopped or killed by us
        self._owner_pid = 0
        self._starts = 0

    # --- what a test asks

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT, for the client setting of that name."""
        if not self.port:
            raise BrokerFailed("the broker has no address before it is started")
        return f"{self.host}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise BrokerFailed("the broker is not running")
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Where its data and logs are."""
        if self._folder is None:
            raise BrokerFailed("the broker has no folder before it is started, or after it is closed")
        return self._folder

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    def create_topic(self, name: str, partitions: int = 1, **config: object) -> None:
        """Returns when the topic can be used. ``cleanup_policy="compact"`` is the setting ``cleanup.policy``."""
        from headpond.testing.topics import create_topic  # the codec: only for those who need it

        if not self.is_running:
            raise BrokerFailed(f"topic {name!r} was not created: the broker is not running")
        create_topic((self.host, self.port), name, partitions, config)

    def produce(self, topic: str, records: Iterable[Sendable], *, timeout_s: float = DEADLINE_S) -> list[StoredRecord]:
        """Write values (text or bytes), pairs of key and value, or whole ``Record``s; returns when they are on disk,
        with what was written and where. A topic that does not exist comes into being, if the broker allows that."""
        from headpond.testing.records import produce

        if not self.is_running:
            raise BrokerFailed(f"nothing was written to topic {topic!r}: the broker is not running")
        return produce((self.host, self.port), topic, records, timeout_s)

    def consume(
        self,
        topic: str,
        *,
        at_least: int = 0,
        partition: int | None = None,
        from_offset: int | None = None,
        uncommitted: bool = False,
        timeout_s: float = DEADLINE_S,
    ) -> list[StoredRecord]:
        """Everything that is in a topic (or in one partition, or from an offset on), by partition and offset.

        ``at_least``: wait until there are so many, and fail when they do not come in time; what comes beyond them is
        returned as well. ``uncommitted``: records of open and aborted transactions, too. No group: nothing is
        remembered."""
        from headpond.testing.records import EARLIEST, consume

        if not self.is_running:
            raise BrokerFailed(f"nothing was read from topic {topic!r}: the broker is not running")
        return consume(
            (self.host, self.port),
            topic,
            partition=partition,
            from_offset=EARLIEST if from_offset is None else from_offset,
            at_least=at_least,
            uncommitted=uncommitted,
            timeout_s=timeout_s,
        )

    def logs(self) -> str:
        """Everything that the broker has written since its last start, to stdout and stderr."""
        return self._written("stdout") + self._written("stderr")

    # --- its life

    def start(self) -> Self:
        """Returns when it serves."""
        give_up = time.monotonic() + PORT_BACK_S
        while True:
            self._launch()
            try:
                self._wait_ready()
                return self
            except StartFailed:
                is_taken = f"{self.host}:{self.port} is in use" in self.logs()
                if not (self._has_port and is_taken) or time.monotonic() >= give_up:
                    raise
            except BaseException:  # Ctrl-C while it starts
                self.kill()
                raise

    def stop(self) -> None:
        """As SIGTERM does: clean, with everything on disk. Does nothing when it is stopped already. Fails when the
        broker had ended by itself or does not end well."""
        self._end_with(signal.SIGTERM)

    def kill(self) -> None:
        """As kill -9 does: nothing of the broker's own gets a chance to run."""
        if self._process is not None:
            self._kill_group(self._process)
            self._is_down()

    def restart(self, *, kill: bool = False) -> Self:
        """Down (politely, or with ``kill``) and up again, with the same port and the same data."""
        if kill:
            self.kill()
        elif self.is_running:
            self.stop()
        return self.start()

    def close(self) -> None:
        """Nothing is left of it: no process, no port, no file (unless ``folder`` was given)."""
        if self._guard is None or os.getpid() != self._owner_pid:
            return  # in a forked child it is the parent's
        self.kill()
        guard, self._guard = self._guard, None
        self._folder = self._kept_folder
        self._has_port = False
        guard.end()

    def __enter__(self) -> Self:
        try:
            return self if self.is_running else self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        """The same for ``async with``: the event loop goes on meanwhile."""
        import asyncio  # only for those who use it already

        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    # --- the process

    def _launch(self) -> None:
        if self.is_running:
            raise BrokerFailed(f"the broker is running already, on {self.bootstrap_servers}")
        guard = self._guarded()
        self._starts += 1
        command = self._command(guard)
        env = headpond_environment({**self._weak_settings(), **self.env})
        with open(self._output("stdout"), "wb") as stdout, open(self._output("stderr"), "wb") as stderr:
            self._process = guard.launch(command, stdout=stdout, stderr=stderr, env=env, cwd=str(self.folder))

    def _command(self, guard: Guard) -> list[str]:
        """Tests of our own put another program before it, which becomes the broker."""
        return guard.headpond("serve", *self._serve_arguments())

    def _serve_arguments(self) -> list[str]:
        listen = f"{self.host}:{self.port if self._has_port else self._wanted_port}"
        sets = [part for name, value in self.settings.items() for part in ("--set", f"{name}={as_text(value)}")]
        return ["--listen", listen, "--data-dir", str(self.data_dir), *sets, *self.arguments]

    def _weak_settings(self) -> dict[str, str]:
        """The defaults go into a settings file, the weakest source that ``headpond serve`` has."""
        weak = {name: value for name, value in self.DEFAULTS.items() if name not in self.settings}
        if not weak:
            return {}
        path = self.folder / "defaults.toml"
        path.write_text("".join(f'"{name}" = "{as_text(value)}"\n' for name, value in weak.items()))
        return {"HEADPOND_CONFIG": str(path)}

    def _guarded(self) -> Guard:
        """The folder exists, and somebody sees to its end."""
        if self._guard is None:
            self._owner_pid = os.getpid()
            if self._kept_folder is None:
                folder = tempfile.mkdtemp(prefix="headpond-")
                try:
                    self._guard = Guard(folder)
                except BaseException:
                    os.rmdir(folder)
                    raise
                self._folder = Path(folder)
            else:
                self._kept_folder.mkdir(parents=True, exist_ok=True)
                self._guard = Guard(None)
        return self._guard

    def _wait_ready(self) -> None:
        assert self._process is not None
        give_up = time.monotonic() + DEADLINE_S
        while (found := _READY.search(self._written("stdout"))) is None:
            if not self.is_running:
                raise StartFailed(f"the broker ended with {self._process.returncode}, it said:\n{self.logs()}")
            if time.monotonic() >= give_up:
                self._kill_group(self._process)
                raise StartFailed(f"the broker was not ready after {DEADLINE_S} s, it said:\n{self.logs()}")
            time.sleep(_LOOK_S)
        self.port = int(found.group(1))
        self._has_port = True

    def _end_with(self, number: signal.Signals) -> None:
        process = self._process
        if process is None:
            return
        was_running = self.is_running
        if was_running:
            process.send_signal(number)
        try:
            code = process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"still running {DEADLINE_S} s after {number.name}, it said:\n{self.logs()}") from None
        self._is_down()
        if code != 0 or not was_running:
            how = f"after {number.name}" if was_running else "by itself"
            raise BrokerFailed(f"the broker ended {how} with {code}, it said:\n{self.logs()}")

    def _kill_group(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:  # its number is not another's yet
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # it has just ended; macOS says EPERM then
            process.wait(DEADLINE_S)

    def _is_down(self) -> None:
        self._process = None
        if self._guard is not None:
            self._guard.forget()

    def _output(self, stream: str) -> Path:
        return self.folder / f"{stream}-{self._starts}.log"

    def _written(self, stream: str) -> str:
        try:
            return self._output(stream).read_text(errors="replace")
        except (BrokerFailed, FileNotFoundError):
            return ""
