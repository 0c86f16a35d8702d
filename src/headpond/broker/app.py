"""The composition root: puts a broker together from its parts, starts it and stops it.

The order of a start is part of the promises: the folder is locked before anything in it is read; the metadata store
is read before the logs, which it names; every leader epoch is raised before a request is served; the listeners are
bound early, so that a port in use is found out first, and serve last. A stop goes the other way and ends with the
clean-shutdown marker.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from headpond.broker.coordinators.coordinator import Surroundings
from headpond.broker.coordinators.group_coordinator import GroupCoordinator
from headpond.broker.coordinators.local_markers import LocalMarkers
from headpond.broker.coordinators.transaction_coordinator import TransactionCoordinator
from headpond.broker.handlers.fetch import fetch
from headpond.broker.handlers.fetch.read import FetchReader
from headpond.broker.handlers.fetch.sessions import FetchSessions
from headpond.broker.handlers.fetch.wanted import WAIT_MS_MAX, FetchOpener
from headpond.broker.handlers.groups import heartbeat
from headpond.broker.handlers.produce import produce
from headpond.broker.handlers.produce.parts import ProduceParts
from headpond.broker.handlers.produce.transactional import ProduceTransactions
from headpond.broker.handlers.produce.waiting import Waiting
from headpond.broker.net.server import Server
from headpond.broker.replicas.replicas import Replicas
from headpond.broker.requests.context import ListenerInfo
from headpond.broker.requests.dispatch import Dispatch
from headpond.broker.requests.pacing import Pacing
from headpond.broker.requests.turns import Turns
from headpond.broker.security.authorizer import AllowAll
from headpond.broker.services import Broker
from headpond.broker.start import later
from headpond.broker.start.checks import check_folder, read_metadata
from headpond.cluster.delta import Delta
from headpond.cluster.features import OF_A_NEW_CLUSTER
from headpond.cluster.follower import FOLLOWER_TASK, ImageFollower
from headpond.cluster.image import MetadataImage
from headpond.cluster.metadata_writer import MetadataWriter
from headpond.cluster.names import OFFSETS_TOPIC
from headpond.cluster.rows import Endpoint
from headpond.cluster.startup import join_cluster
from headpond.config.broker import BrokerSettings, settings_with_dynamic, topic_config
from headpond.config.definition import ConfigError
from headpond.config.dynamic import check_topic
from headpond.config.listeners import Listener
from headpond.config.log import LogConfig
from headpond.coordination.slices import Slices
from headpond.model import TopicId, TopicPartition
from headpond.ports import (
    Clock,
    CodeFiles,
    FileSystem,
    MetadataStore,
    Network,
    Processes,
    ProcessFacts,
    Random,
    Syncer,
    Tasks,
    Workers,
)
from headpond.protocol.apis import FETCH, HEARTBEAT, PRODUCE
from headpond.replication.deadlines import Deadlines
from headpond.replication.partition import Partition
from headpond.storage.log.log import PartitionLog
from headpond.storage.manager import LogManager, StorageConfig
from headpond.storage.ports import StoragePorts
from headpond.telemetry.requests import RequestMeters

if TYPE_CHECKING:
    from headpond.broker.metrics.port import Observability

log = logging.getLogger("headpond.broker")

STOP_WAIT_S = 2.0
STOP_STEP_S = 0.002
"""A stop waits this long at most for flushes under way, and looks this often."""

VITAL_TASKS = (FOLLOWER_TASK,)
"""A broker in which one of these has failed must not go on as if it had not: whoever runs it ends the process."""


class Ports(NamedTuple):
    """The world that a broker runs in: the real one (``runtime/``) or a simulated one."""

    clock: Clock
    random: Random
    fs: FileSystem
    workers: Workers
    tasks: Tasks
    network: Network
    open_store: Callable[[str], Awaitable[MetadataStore]]  # given the data folder
    processes: Processes | None = None  # without it nothing is compacted
    syncer: Syncer | None = None  # without it workers sync
    lookers: Workers | None = None  # threads for what clients choose the cost of; without them it shares the workers
    look_at_process: Callable[[], ProcessFacts] | None = None  # blocking; without it there are no metrics
    code_files: CodeFiles | None = None  # without it modules are imported when they are first needed


class BrokerApp:
    """One broker. ``start`` returns when it serves; ``stop`` when everything is on disk and closed."""

    def __init__(self, settings: BrokerSettings, ports: Ports, *, on_fatal: Callable[[BaseException], None]) -> None:
        self.settings = settings
        self.addresses: list[tuple[str, int]] = []
        self.metrics_address: tuple[str, int] | None = None
        self._ports = ports
        self._lookers = ports.lookers if ports.lookers is not None else ports.workers
        self._started_s = ports.clock.monotonic()
        self._is_stopping = False
        self._requests = RequestMeters()
        self._observability: Observability | None = None
        self._image = MetadataImage()
        self._deadlines = Deadlines(ports.clock)
        self._waiting_produces = Waiting(self._deadlines, self._requests.of(PRODUCE.name))
        self._logs = LogManager(
            settings.storage.data_dir,
            StoragePorts(
                fs=ports.fs,
                clock=ports.clock,
                workers=ports.workers,
                tasks=ports.tasks,
                random=ports.random,
                processes=ports.processes,
                syncer=ports.syncer,
                lookers=self._lookers,
            ),
            StorageConfig.of(settings.storage),
            on_fatal,
        )
        self._replicas = Replicas(
            broker_id=settings.broker_id,
            rack=settings.rack,
            image=self._image,
            logs=self._logs,
            tasks=ports.tasks,
            make_partition=self._make_partition,
            config_of=self._config_of,
        )

    async def start(self) -> None:
        settings, ports = self.settings, self._ports
        await self._logs.lock()
        self._store = await ports.open_store(settings.storage.data_dir)
        follower = ImageFollower(self._store, self._image, ports.clock, ports.tasks)
        metadata_writer = MetadataWriter(
            broker_id=settings.broker_id,
            store=self._store,
            follower=follower,
            clock=ports.clock,
            random=ports.random,
            tasks=ports.tasks,
            defaults=settings.topics,
            validate_topic_configs=lambda configs: check_topic(configs, self.settings.effective),
        )
        self._broker = self._make_broker(metadata_writer)
        self._server = self._make_server()
        await self._serve_metrics()
        endpoints = [await self._listen(listener) for listener in settings.network.listeners]
        await read_metadata(follower, settings.storage.data_dir)
        await check_folder(self._image, ports.fs, ports.workers, settings.storage.data_dir)
        cluster_id = await join_cluster(
            metadata_writer,
            endpoints=endpoints,
            rack=settings.rack,
            cluster_id=self._logs.cluster_id,
            features=OF_A_NEW_CLUSTER,
        )
        self._reconfigure()
        await self._logs.open(self._known_partitions(), self._config_of, cluster_id, settings.broker_id)
        await self._replicas.load()
        follower.subscribe(self._image_changed, in_pieces=True)
        follower.subscribe(self._groups.image_changed)
        self._server.open()
        if ports.code_files is not None:
            ports.tasks.spawn("import the rest", self._import_the_rest(ports.code_files))

    async def stop(self) -> None:
        self._is_stopping = True
        await self._server.stop_serving()
        await self._transactions.stop()
        await self._groups.stop()
        await self._answer_what_is_parked()
        await self._server.close()
        if self._observability is not None:
            await self._observability.close()
        await self._ports.tasks.cancel_all()
        await self._logs.close()
        await self._store.close()

    async def give_up_start(self) -> None:
        """After a ``start`` that failed, for a process that goes on: nothing of it is left."""
        if (server := getattr(self, "_server", None)) is not None:
            await server.close()
        if self._observability is not None:
            await self._observability.close()
        await self._ports.tasks.cancel_all()
        await self._logs.close()
        if (store := getattr(self, "_store", None)) is not None:
            await store.close()

    async def _import_the_rest(self, files: CodeFiles) -> None:
        await self._ports.clock.sleep(later.AFTER_S)
        await self._broker.pacing.slices.finish(later.imported((*later.MODULES, *files.later_modules), files))

    async def _answer_what_is_parked(self) -> None:
        """What is appended is answered before the connections close: its producers need not send it again."""
        clock = self._ports.clock
        deadline = clock.monotonic() + STOP_WAIT_S
        while (self._waiting_produces.count or self._groups.is_answering) and clock.monotonic() < deadline:
            await clock.sleep(STOP_STEP_S)

    # --- putting together

    def _make_partition(self, log: PartitionLog) -> Partition:
        follows_flush = self.settings.storage.flush == "ack"
        return Partition(log, self._logs.commits, self._deadlines, follows_flush=follows_flush)

    def _make_broker(self, metadata_writer: MetadataWriter) -> Broker:
        ports = self._ports
        pacing = Pacing(Slices(ports.clock, self._lookers))
        around = Surroundings(
            image=self._image,
            metadata_writer=metadata_writer,
            replicas=self._replicas,
            clock=ports.clock,
            random=ports.random,
            tasks=ports.tasks,
            slices=pacing.slices,
        )
        self._groups = GroupCoordinator(around, lambda: self.settings.groups)
        markers = LocalMarkers(
            self._replicas,
            ports.clock,
            ports.tasks,
            pacing.slices,
            offsets_topic=OFFSETS_TOPIC,
            offsets=self._groups.runtime,
        )
        self._transactions = TransactionCoordinator(around, lambda: self.settings.transactions, markers)
        return Broker(
            settings=self.settings,
            clock=ports.clock,
            random=ports.random,
            image=self._image,
            metadata_writer=metadata_writer,
            replicas=self._replicas,
            logs=self._logs,
            authorizer=AllowAll(),
            groups=self._groups,
            transactions=self._transactions,
            markers=markers,
            pacing=pacing,
        )

    def _make_server(self) -> Server:
        ports, settings, broker = self._ports, self.settings, self._broker
        dispatch = Dispatch(broker, ports.tasks, self._requests, ports.code_files)
        server = Server(settings.network, ports.clock, ports.network, dispatch)
        turns = Turns(broker.pacing.slices, ports.tasks)
        produces = produce.ProduceHandler(
            ProduceParts(
                replicas=self._replicas,
                waiting=self._waiting_produces,
                authorizer=broker.authorizer,
                transactions=ProduceTransactions(
                    self._transactions.verifier, ports.clock, lambda: self.settings.transactions
                ),
                looks=self._logs.looks,
                turns=turns,
                meter=self._requests.of(PRODUCE.name),
                clock=ports.clock,
                tasks=ports.tasks,
                workers=self._lookers,
            )
        )
        sessions = self._sessions = FetchSessions(
            ports.random,
            slots=settings.fetch.sessions_max,
            eviction_ms=settings.fetch.session_eviction_min_ms,
            free=lambda work: ports.tasks.spawn("free fetch sessions", broker.pacing.slices.finish(work)),
        )
        fetches = self._fetches = fetch.FetchHandler(
            opener=FetchOpener(
                broker_id=settings.broker_id,
                rack=settings.rack,
                sessions=sessions,
                clock=ports.clock,
                bytes_max=lambda: broker.settings.fetch.bytes_max,
                wait_ms_max=lambda: broker.settings.network.idle_ms_max or WAIT_MS_MAX,
            ),
            reader=FetchReader(self._replicas, broker.authorizer, server, self._requests.of(FETCH.name)),
            turns=turns,
            clock=ports.clock,
            tasks=ports.tasks,
            workers=self._lookers,
            meter=self._requests.of(FETCH.name),
        )
        server.add_hot_handler(PRODUCE.key, PRODUCE.versions, produces.receive, answers_are_small=True)
        server.add_hot_handler(FETCH.key, FETCH.versions, fetches.receive, answers_are_small=False)
        heartbeats = heartbeat.HeartbeatHandler(broker, self._requests.of(HEARTBEAT.name))
        server.add_hot_handler(HEARTBEAT.key, HEARTBEAT.versions, heartbeats.receive, answers_are_small=True)
        return server

    async def _serve_metrics(self) -> None:
        settings, ports, folder = self.settings, self._ports, self.settings.storage.data_dir
        if settings.metrics is None or ports.look_at_process is None:
            return
        from headpond.broker.metrics.metrics import Observed
        from headpond.broker.metrics.port import Observability

        self._observability = Observability(
            Observed(
                settings=settings,
                clock=ports.clock,
                started_s=self._started_s,
                unready=self._unready,
                requests=self._requests,
                server=self._server,
                produces=self._waiting_produces,
                fetches=self._fetches,
                sessions=self._sessions,
                replicas=self._replicas,
                logs=self._logs,
                groups=self._groups,
                transactions=self._transactions,
            ),
            network=ports.network,
            tasks=ports.tasks,
            workers=ports.workers,
            look_at_process=ports.look_at_process,
            look_at_disk=lambda: (ports.fs.total_bytes(folder), ports.fs.free_bytes(folder)),
        )
        self.metrics_address = await self._observability.listen(settings.metrics)

    def _unready(self) -> str | None:
        if self._is_stopping:
            return "stopping"
        return None if self._server.is_open else "starting"

    async def _listen(self, listener: Listener) -> Endpoint:
        def info_for(port: int) -> ListenerInfo:
            return ListenerInfo(
                listener.name, listener.protocol, listener.advertised_host, listener.advertised_port or port
            )

        port = await self._server.listen(listener.host, listener.port, info_for)
        self.addresses.append((listener.host, port))
        info = info_for(port)
        return Endpoint(listener.name, listener.protocol, info.advertised_host, info.advertised_port)

    # --- following the metadata

    def _known_partitions(self) -> dict[TopicPartition, TopicId]:
        return {
            TopicPartition(topic.name, index): topic.topic_id
            for topic in self._image.topics.values()
            for index, state in enumerate(topic.partitions)
            if self.settings.broker_id in state.replicas
        }

    def _config_of(self, topic: str) -> LogConfig:
        try:
            return topic_config(self._image.topic_configs(topic), self.settings)
        except ConfigError as error:
            # Checked when it was stored; by another version, perhaps. The broker's defaults are better than no broker.
            log.error("a stored setting of topic %s can't be used, the defaults are: %s", topic, error)
            return self.settings.log

    def _image_changed(self, delta: Delta) -> None:
        if None in delta.broker_configs or self.settings.broker_id in delta.broker_configs:
            self._reconfigure()
            self._replicas.reconfigure_all()
        self._replicas.apply(delta)

    def _reconfigure(self) -> None:
        """Dynamic settings changed: everybody gets the new object."""
        image = self._image
        try:
            self.settings = settings_with_dynamic(
                self.settings.effective, image.broker_configs(None), image.broker_configs(self.settings.broker_id)
            )
        except ConfigError as error:
            log.error("a stored setting can't be used, the settings stay as they are: %s", error)
            return
        self._broker.settings = self.settings
        self._server.reconfigure(self.settings.network)
        self._logs.reconfigure(StorageConfig.of(self.settings.storage))
