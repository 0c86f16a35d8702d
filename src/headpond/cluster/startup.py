"""What a broker writes into the metadata store when it starts, before it serves.

In this order: the cluster's id (first start ever) and the features that it has not yet, the broker's registration, the
sweep of what a crash left half-made, and the bump of every leader epoch that the broker holds: a rebooted leader must
never go on in an epoch of its former life, in which it may have acknowledged what its disk then lost. A crash in the
middle is harmless: the next start does it all again, with larger epochs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from headpond.cluster import keys
from headpond.cluster.ids import new_uuid
from headpond.cluster.metadata_writer import PLANS_MAX, TIMEOUT_MS, MetadataWriter
from headpond.cluster.rows import BrokerRow, ClusterRow, Endpoint, FeatureRow, PartitionState, encode
from headpond.cluster.store_transaction import chunks_of
from headpond.model import BrokerError, ErrorCode, TopicId
from headpond.model.ids import id_text
from headpond.ports import Committed, Compare, Delete, Put

log = logging.getLogger(__name__)


async def join_cluster(
    metadata_writer: MetadataWriter,
    *,
    endpoints: Sequence[Endpoint],
    rack: str | None = None,
    cluster_id: str | None = None,
    features: Mapping[str, int] | None = None,
    lease: int | None = None,
) -> str:
    """Do all of it; the follower must have been started. ``endpoints`` are the addresses that clients are told, with
    real ports. ``cluster_id``: what the data folder says, if it says something. Returns the cluster's id."""
    found = await found_cluster(metadata_writer, cluster_id, features or {})
    await finalize_new(metadata_writer, features or {})
    await register(metadata_writer, endpoints=endpoints, rack=rack, lease=lease)
    for topic_id in sorted(metadata_writer.image.loose):
        await metadata_writer.sweep(topic_id)
    await bump_leader_epochs(metadata_writer)
    return found


async def found_cluster(metadata_writer: MetadataWriter, cluster_id: str | None, features: Mapping[str, int]) -> str:
    """Make sure that the cluster has an id, and finalize ``features`` when it is new."""
    wanted = cluster_id or id_text(new_uuid(metadata_writer.random))
    deadline = _deadline(metadata_writer)
    if not metadata_writer.image.cluster_id:
        compares = [Compare(keys.CLUSTER, 0)]
        puts = [Put(keys.CLUSTER, encode(ClusterRow(wanted)))]
        puts += [Put(keys.feature(name), encode(FeatureRow(level))) for name, level in sorted(features.items())]
        outcome = await metadata_writer.transact(compares, puts, deadline)
        await metadata_writer.follower.wait_for(outcome.revision, timeout_s=TIMEOUT_MS / 1000)
    found = metadata_writer.image.cluster_id
    if cluster_id is not None and cluster_id != found:
        raise BrokerError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"the data folder belongs to cluster {cluster_id}, the metadata store to cluster {found}",
        )
    return found


async def finalize_new(metadata_writer: MetadataWriter, features: Mapping[str, int]) -> None:
    """Finalize what an earlier version of the program did not know. Other brokers might be of such a version still:
    with any of them registered everything stays as it is."""
    image = metadata_writer.image
    if any(broker_id != metadata_writer.broker_id for broker_id in image.brokers):
        return
    missing = {keys.feature(name): level for name, level in sorted(features.items()) if name not in image.features}
    if missing:
        compares = [Compare(key, 0) for key in missing]
        puts = [Put(key, encode(FeatureRow(level))) for key, level in missing.items()]
        outcome = await metadata_writer.transact(compares, puts, _deadline(metadata_writer))
        await metadata_writer.follower.wait_for(outcome.revision, timeout_s=TIMEOUT_MS / 1000)


async def register(
    metadata_writer: MetadataWriter, *, endpoints: Sequence[Endpoint], rack: str | None = None, lease: int | None = None
) -> int:
    """Register this incarnation of the broker and return its epoch. A former registration is removed first, so that the
    key is created anew: the revision of its creation is the broker epoch, and grows with every start."""
    key = keys.broker(metadata_writer.broker_id)
    incarnation = id_text(new_uuid(metadata_writer.random))
    put = Put(key, encode(BrokerRow(tuple(endpoints), incarnation, rack)), lease)
    deadline = _deadline(metadata_writer)
    for _ in range(PLANS_MAX):
        revision = metadata_writer.image.key_revision(key)
        operation: Put | Delete = Delete(key) if revision else put
        outcome = await metadata_writer.transact([Compare(key, revision)], [operation], deadline)
        await metadata_writer.follower.wait_for(outcome.revision, timeout_s=TIMEOUT_MS / 1000)
        registered = metadata_writer.image.brokers.get(metadata_writer.broker_id)
        if registered is not None and registered.incarnation == incarnation:
            return registered.epoch
    raise BrokerError(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        f"somebody else keeps registering as broker {metadata_writer.broker_id}",
    )


async def bump_leader_epochs(metadata_writer: MetadataWriter) -> int:
    """Raise the leader epoch of every partition that this broker leads; returns how many there were."""
    due = {
        (topic.topic_id, index): state.leader_epoch
        for topic in metadata_writer.image.topics.values()
        for index, state in enumerate(topic.partitions)
        if state.leader == metadata_writer.broker_id
    }
    count = len(due)
    deadline = _deadline(metadata_writer)
    for _ in range(PLANS_MAX):
        if not due:
            return count
        last_revision = metadata_writer.image.revision
        for some in chunks_of(list(due), fixed_operations=0, operations_each=2):
            part = _bumps(metadata_writer, some)
            compares = [Compare(write.key, metadata_writer.image.key_revision(write.key)) for write in part]
            outcome = await metadata_writer.transact(compares, part, deadline)
            last_revision = max(last_revision, outcome.revision)
            if not isinstance(outcome, Committed):
                log.info("somebody else changes partitions of this broker; looking again")
        await metadata_writer.follower.wait_for(last_revision, timeout_s=TIMEOUT_MS / 1000)
        due = {at: epoch for at, epoch in due.items() if _still_at(metadata_writer, at, epoch)}
    raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, "the leader epochs could not be raised")


def _bumps(metadata_writer: MetadataWriter, due: Iterable[tuple[TopicId, int]]) -> list[Put | Delete]:
    image = metadata_writer.image
    puts: list[Put | Delete] = []
    for topic_id, index in due:
        name = image.topic_names.get(topic_id)
        state = image.partition(name, index) if name is not None else None
        if state is None:
            continue  # deleted meanwhile
        bumped = msgspec.structs.replace(
            state, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1
        )
        puts.append(Put(keys.partition(topic_id, index), encode(bumped)))
    return puts


def _still_at(metadata_writer: MetadataWriter, at: tuple[TopicId, int], epoch: int) -> bool:
    name = metadata_writer.image.topic_names.get(at[0])
    state: PartitionState | None = metadata_writer.image.partition(name, at[1]) if name is not None else None
    return state is not None and state.leader == metadata_writer.broker_id and state.leader_epoch == epoch


def _deadline(metadata_writer: MetadataWriter) -> float:
    return metadata_writer.clock.monotonic() + TIMEOUT_MS / 1000
