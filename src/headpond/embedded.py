"""``headpond.EmbeddedBroker``: the real broker on a thread of this process, for notebooks and small applications.

    with headpond.EmbeddedBroker("data") as broker:
        broker.create_topic("orders", partitions=3)
        broker.produce("orders", ["two apples"])
        print(broker.bootstrap_servers)                  # for any Kafka client, of any process

It is ``headpond serve`` without its process: the same settings (``HEADPOND_*`` variables do not count), data folder,
promises and files. What is a process's own stays the caller's: signals, limits, the garbage collector, the event loop.
Its calls are those of ``headpond.testing.Broker``; a broker that has to survive the caller's kill -9, or that must not
share its interpreter with the caller's work, is ``headpond serve``.

A failed fsync, after which no broker may go on, does not end the caller's process: the broker stops, clients lose their
connections, the reason is logged and is ``failure``, and each further call (``close`` too) raises it. The next start
checks what the disk has.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import warnings
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Self

from headpond.broker.app import VITAL_TASKS, BrokerApp, Ports
from headpond.config.broker import BrokerSettings
from headpond.config.definition import ConfigError
from headpond.config.sources import load
from headpond.model import BrokerError
from headpond.runtime import environment, lifetimes
from headpond.runtime.clock import SystemClock
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.loop_thread import LoopThread
from headpond.runtime.metastore_sqlite import SqliteMetadataStore, StoreUnusable
from headpond.runtime.network import TcpNetwork
from headpond.runtime.process_facts import process_facts
from headpond.runtime.processes import WorkerProcesses
from headpond.runtime.random import SystemRandom
from headpond.runtime.tasks import LoopTasks
from headpond.runtime.workers import ThreadWorkers
from headpond.storage.errors import DataFolderUnusable
from headpond.storage.folder.names import METADATA_STORE
from headpond.storage.looks.looks import TURNS_AT_ONCE
from headpond.testing.errors import BrokerFailed, StartFailed
from headpond.testing.values import as_text

if TYPE_CHECKING:
    from headpond.testing.sendable import Sendable, StoredRecord

log = logging.getLogger("headpond")

HOST = "127.0.0.1"
DEADLINE_S = 30.0


class EmbeddedBroker:
    """Not started before the ``with`` block begins or ``start`` is called; may be closed and started again.

    data_dir    made if it is missing; one broker at a time
    settings    broker settings by their names, as for ``headpond serve --set``
    host, port  where it listens; port 0 picks a free one, which a restart asks for again
    """

    def __init__(
        self,
        data_dir: str | PurePath,
        *,
        settings: Mapping[str, object] | None = None,
        host: str = HOST,
        port: int = 0,
    ) -> None:
        if not isinstance(data_dir, str | PurePath):
            raise TypeError(f"the data folder is a {type(data_dir).__name__}: it should be a str or a Path")
        self.data_dir = environment.absolute_path(str(data_dir))
        self.settings = dict(settings or {})
        self.host = host
        self.port = port
        self._inside: _Inside | None = None
        self._thread: LoopThread | None = None

    # --- what a program asks

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT, for the client setting of that name."""
        if not self.port:
            raise BrokerFailed("the broker has no address before it is started")
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._inside is not None and self._inside.failure is None

    @property
    def failure(self) -> BaseException | None:
        """Why it has stopped by itself."""
        return self._inside.failure if self._inside is not None else None

    def create_topic(self, name: str, partitions: int = 1, **config: object) -> None:
        """Returns when the topic can be used. ``cleanup_policy="compact"`` is the setting ``cleanup.policy``."""
        from headpond.testing.topics import create_topic

        self._require_running(f"topic {name!r} was not created")
        create_topic((self.host, self.port), name, partitions, config)

    def topics(self) -> dict[str, int]:
        """The topics, and how many partitions each has; without the broker's own."""
        from headpond.testing.records import topics

        self._require_running("the topics were not listed")
        return topics((self.host, self.port), DEADLINE_S)

    def produce(self, topic: str, records: Iterable[Sendable], *, timeout_s: float = DEADLINE_S) -> list[StoredRecord]:
        """Write values (text or bytes), pairs of key and value, or whole ``headpond.testing.Record``s; returns when
        they are on disk, with what was written and where. A topic that does not exist comes into being, if the
        broker allows that."""
        from headpond.testing.records import produce

        self._require_running(f"nothing was written to topic {topic!r}")
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

        self._require_running(f"nothing was read from topic {topic!r}")
        return consume(
            (self.host, self.port),
            topic,
            partition=partition,
            from_offset=EARLIEST if from_offset is None else from_offset,
            at_least=at_least,
            uncommitted=uncommitted,
            timeout_s=timeout_s,
        )

    # --- its life

    def start(self) -> Self:
        """Returns when it serves. Raises ``StartFailed``: one sentence that says what to change."""
        if self._inside is not None:
            raise BrokerFailed(f"the broker was started already, on {self.bootstrap_servers}")
        settings = self._parsed_settings()
        inside, thread = _Inside(settings), LoopThread("headpond broker")
        try:
            self.port = thread.call(inside.start())
        except (BrokerError, DataFolderUnusable, OSError, StoreUnusable) as error:
            thread.close()
            raise StartFailed(f"the broker did not start: {error}") from error
        except BaseException:  # Ctrl-C, too
            thread.close()
            raise
        self._inside, self._thread = inside, thread
        self._forget = lifetimes.keep(self, lambda: _let_go(inside, thread))
        return self

    def close(self) -> None:
        """Everything on disk, marked as clean, and let go of. Does nothing when it is not running. Raises
        ``BrokerFailed`` when the broker had stopped by itself."""
        inside, thread, failure = self._inside, self._thread, self.failure
        if inside is None or thread is None:
            return
        thread.call(inside.stop())
        self._inside = self._thread = None
        self._forget()
        thread.close()
        if failure is not None:
            raise BrokerFailed(f"the broker had stopped by itself: {failure}")

    def disown(self) -> None:
        """This is a forked child: the broker is the parent's, and is reached by its address."""
        self._inside = self._thread = None

    def __enter__(self) -> Self:
        return self if self.is_running else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(*([BrokerFailed] if error is not None else [])):  # what came first says more
            self.close()

    def _parsed_settings(self) -> BrokerSettings:
        address = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        sets = [f"{name}={as_text(value)}" for name, value in self.settings.items()]
        try:
            return load(
                {"listen": address, "data-dir": self.data_dir},
                sets,
                {},
                environment.read_file,
                hostname=environment.host_name(),
            ).settings
        except ConfigError as error:
            raise StartFailed(f"the broker did not start: {error}") from error

    def _require_running(self, what: str) -> None:
        if self._inside is None:
            raise BrokerFailed(f"{what}: the broker is not running")
        if self._inside.failure is not None:
            raise BrokerFailed(f"{what}: the broker has stopped by itself: {self._inside.failure}")


class _Inside:
    """The broker on its loop."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self.failure: BaseException | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def start(self) -> int:
        settings, clock, fs = self._settings, SystemClock(), DiskFileSystem()
        self._workers = ThreadWorkers()
        self._lookers = ThreadWorkers("headpond-look", threads_max=TURNS_AT_ONCE)
        self._processes = WorkerProcesses()
        self._tasks = LoopTasks(on_failure=self._task_failed)
        ports = Ports(
            clock=clock,
            random=SystemRandom(),
            fs=fs,
            workers=self._workers,
            lookers=self._lookers,
            processes=self._processes,
            tasks=self._tasks,
            network=TcpNetwork(backlog=settings.network.backlog),
            open_store=lambda folder: SqliteMetadataStore.open(f"{folder}/{METADATA_STORE}", clock),
            look_at_process=process_facts,
        )
        self._app = BrokerApp(settings, ports, on_fatal=self._give_up)
        try:
            await self._app.start()
        except BaseException:
            await self._app.give_up_start()
            await self._end_workers()
            raise
        return self._app.addresses[0][1]

    async def stop(self) -> None:
        """Goes on when whoever waits for it is interrupted, and may be waited for again."""
        self._begin_stop()
        assert self._stopping is not None
        await asyncio.shield(self._stopping)

    def _begin_stop(self) -> None:
        if self._stopping is None:
            self._stopping = self._tasks.spawn("stop the broker", self._stop())

    async def _stop(self) -> None:
        try:
            await self._app.stop()
        finally:
            await self._end_workers()

    async def _end_workers(self) -> None:
        await self._processes.close()
        await self._lookers.close()
        await self._workers.close()

    def _task_failed(self, name: str, error: BaseException) -> None:
        log.error("task %s failed", name, exc_info=error)
        if name in VITAL_TASKS:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        """The disk failed, or what a broker can't be without: it stops, for whoever runs it has other work, too."""
        if self.failure is None:
            self.failure = error
            log.critical("the broker in this process can't go on and stops: %s", error)
            self._begin_stop()


def _let_go(inside: _Inside, thread: LoopThread) -> None:
    """Nobody refers to the broker any more: it stops in the background."""
    warnings.warn("an embedded broker was not closed", ResourceWarning, stacklevel=2)

    async def stop() -> None:
        try:
            await inside.stop()
        finally:
            thread.end_soon()

    with contextlib.suppress(RuntimeError):  # the loop is closed
        thread.begin(stop())
