"""Adoption: folders that a Kafka (or a backup) left in the data folder become topics of this broker.

    look        every stray folder is read from end to end; a topic that is not whole, or not sound, is left alone
    make ready  what was read is made durable, and the checkpoints say that it is sound
    register    producer ids move above all that the logs know; then the topics are written to the metadata store, with
                their ids and leader epochs
    load        the logs are recovered and closed again: an ordinary start of the broker finds them clean

The broker does not serve meanwhile. A crash at any point leaves each topic adopted or untouched; adopting again does
the rest. An adopted topic keeps everything (``KEEP_ALL``) until somebody says otherwise: the settings that it had are
not in its folders, and the default retention would delete what has only just arrived.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from itertools import count, groupby, islice
from typing import NamedTuple

from headpond.broker.start.checks import read_metadata
from headpond.cluster.features import OF_A_NEW_CLUSTER
from headpond.cluster.follower import ImageFollower
from headpond.cluster.ids import new_topic_id
from headpond.cluster.image import MetadataImage
from headpond.cluster.metadata_writer import MetadataWriter
from headpond.cluster.names import CLUSTER_METADATA_TOPIC, is_internal
from headpond.cluster.rows import PartitionState
from headpond.cluster.startup import found_cluster
from headpond.cluster.topics import PlannedTopic, check_adoption
from headpond.config.broker import BrokerSettings, topic_config
from headpond.config.dynamic import check_topic
from headpond.model import BrokerError, TopicId, TopicPartition
from headpond.ports import Clock, FileSystem, MetadataStore, Random, Tasks, Workers
from headpond.storage.folder import data_folder
from headpond.storage.folder.names import LOCK
from headpond.storage.manager import LogManager, StorageConfig
from headpond.storage.ports import StoragePorts
from headpond.storage.recovery.adoption import look_into, make_ready, strays
from headpond.storage.recovery.inspection import Inspected

KEEP_ALL: Mapping[str, str] = {"retention.ms": "-1", "retention.bytes": "-1"}


OnRead = Callable[[int, int], None]
"""Told how many bytes the next folder had, and how many all have."""


class AdoptionPorts(NamedTuple):
    """What it needs of the world; no network."""

    clock: Clock
    random: Random
    fs: FileSystem
    workers: Workers
    tasks: Tasks
    open_store: Callable[[str], Awaitable[MetadataStore]]  # given the data folder


class Candidate(NamedTuple):
    """A topic found in the data folder. ``refused``: why it was left alone."""

    name: str
    folders: tuple[Inspected, ...]
    refused: str | None = None


async def adopt(
    settings: BrokerSettings,
    ports: AdoptionPorts,
    *,
    topics: Collection[str] | None = None,
    dry_run: bool = False,
    on_read: OnRead = lambda size_bytes, total_bytes: None,
) -> list[Candidate]:
    """Adopt the stray folders, or those of ``topics`` only; what was found, adopted or refused. With ``dry_run``
    nothing in the data folder is changed (``open_store`` may give a copy then). Raises ``DataFolderUnusable``,
    ``BrokerError``, ``OSError``."""
    failures: list[BaseException] = []
    logs = LogManager(
        settings.storage.data_dir,
        StoragePorts(fs=ports.fs, clock=ports.clock, workers=ports.workers, tasks=ports.tasks, random=ports.random),
        StorageConfig.of(settings.storage),
        on_fatal=failures.append,
    )
    # Who only looks must not leave a lock file behind; and where there is none, no broker has the folder.
    lock_file = f"{settings.storage.data_dir}/{LOCK}"
    if not dry_run or await ports.workers.run(ports.fs.exists, lock_file):
        await logs.lock()
    else:
        await ports.workers.run(data_folder.whose, ports.fs, settings.storage.data_dir)
    store = await ports.open_store(settings.storage.data_dir)
    try:
        follower = ImageFollower(store, MetadataImage(), ports.clock, ports.tasks)
        metadata_writer = MetadataWriter(
            broker_id=settings.broker_id,
            store=store,
            follower=follower,
            clock=ports.clock,
            random=ports.random,
            tasks=ports.tasks,
            defaults=settings.topics,
            validate_topic_configs=lambda configs: check_topic(configs, settings.effective),
        )
        await read_metadata(follower, settings.storage.data_dir)
        return await _Adoption(settings, ports, logs, metadata_writer, on_read).run(topics, dry_run=dry_run)
    finally:
        await logs.close()
        await ports.tasks.cancel_all()
        await store.close()
        if failures:
            raise failures[0]


class _Adoption:
    def __init__(
        self,
        settings: BrokerSettings,
        ports: AdoptionPorts,
        logs: LogManager,
        metadata_writer: MetadataWriter,
        on_read: OnRead,
    ) -> None:
        self._settings = settings
        self._ports = ports
        self._logs = logs
        self._metadata_writer = metadata_writer
        self._on_read = on_read

    async def run(self, topics: Collection[str] | None, *, dry_run: bool) -> list[Candidate]:
        image, data_dir = self._metadata_writer.image, self._settings.storage.data_dir
        is_new = not image.topics
        folders = await self._look(topics, settle=not dry_run)
        found = [self._judge(name, tuple(group)) for name, group in groupby(folders, key=lambda each: each.tp.topic)]
        chosen = [each for each in found if each.refused is None]
        if dry_run or not chosen:
            return found
        planned = [self._plan(each) for each in chosen]
        sound = [
            folder._replace(topic_id=topic.topic_id)
            for topic, each in zip(planned, chosen, strict=True)
            for folder in each.folders
        ]
        await self._ports.workers.run(lambda: make_ready(self._ports.fs, data_dir, sound, keep_log_starts=is_new))
        cluster_id = await found_cluster(self._metadata_writer, self._logs.cluster_id, OF_A_NEW_CLUSTER)
        await self._metadata_writer.producer_ids.keep_above(max(folder.last_producer_id for folder in sound))
        for topic in planned:
            await self._metadata_writer.adopt_topic(topic)
        ours = _assigned(image, self._settings.broker_id)
        await self._logs.open(
            ours,
            lambda topic: topic_config(image.topic_configs(topic), self._settings),
            cluster_id,
            self._settings.broker_id,
        )
        return found

    async def _look(self, topics: Collection[str] | None, *, settle: bool) -> list[Inspected]:
        fs, workers, data_dir = self._ports.fs, self._ports.workers, self._settings.storage.data_dir
        known = _known(self._metadata_writer.image)
        found = await workers.run(lambda: strays(fs, data_dir, leave_out=known, topics=topics))
        total_bytes = sum(stray.size_bytes for stray in found)
        inspected: list[Inspected] = []
        for stray in found:
            inspected.append(await workers.run(lambda stray=stray: look_into(fs, stray, settle=settle)))
            self._on_read(stray.size_bytes, total_bytes)
        return inspected

    def _judge(self, name: str, folders: tuple[Inspected, ...]) -> Candidate:
        candidate = Candidate(name, folders)
        refused = why_not(folders)
        if refused is None:
            try:
                planned = self._plan(candidate)
                check_adoption(
                    self._metadata_writer.image, planned, lambda configs: check_topic(configs, self._settings.effective)
                )
            except BrokerError as error:
                refused = error.message
        return candidate._replace(refused=refused)

    def _plan(self, candidate: Candidate) -> PlannedTopic:
        topic_id = next((each.topic_id for each in candidate.folders if each.topic_id is not None), None)
        own = (self._settings.broker_id,)
        return PlannedTopic(
            candidate.name,
            topic_id if topic_id is not None else new_topic_id(self._ports.random),
            tuple(
                # The next start of the broker raises it: no batch of ours has an epoch that somebody else wrote in.
                PartitionState(own[0], leader_epoch=max(0, each.leader_epoch), partition_epoch=0, replicas=own, isr=own)
                for each in candidate.folders
            ),
            KEEP_ALL,
        )


def why_not(folders: Iterable[Inspected]) -> str | None:
    """Why these folders, in the order of their partitions, can't become a topic; None: they can. Pure."""
    folders = list(folders)
    name = folders[0].tp.topic
    if is_internal(name) or name == CLUSTER_METADATA_TOPIC:
        return "it is internal to the broker that wrote it"
    present = {each.tp.partition for each in folders}
    if max(present) >= len(present):
        # Not the set of all that ought to be there: a "backup-20261117" is no topic of twenty million partitions.
        missing = islice((number for number in count() if number not in present), 5)
        absent = ", ".join(f"{name}-{number}" for number in missing if number < max(present))
        return f"partitions are missing: {absent}; copy them too, or make empty folders for those without records"
    ids = {each.topic_id for each in folders if each.topic_id is not None}
    if len(ids) > 1:
        return "its partitions are of different topics of that name (their partition.metadata differ)"
    for each in folders:
        if each.problem is not None:
            return f"{each.tp}: {each.problem}"
    return None


def _known(image: MetadataImage) -> set[TopicPartition]:
    return {TopicPartition(topic.name, at) for topic in image.topics.values() for at in range(len(topic.partitions))}


def _assigned(image: MetadataImage, broker_id: int) -> dict[TopicPartition, TopicId]:
    return {
        TopicPartition(topic.name, index): topic.topic_id
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if broker_id in state.replicas
    }
