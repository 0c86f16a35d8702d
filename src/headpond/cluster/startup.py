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
from headpond.cluster.controller import PLANS_MAX, TIMEOUT_MS, Controller
from headpond.cluster.ids import id_text, new_uuid
from headpond.cluster.rows import BrokerRow, ClusterRow, Endpoint, FeatureRow, PartitionState, encode
from headpond.cluster.transactions import chunks_of
from headpond.model import BrokerError, ErrorCode, TopicId
from headpond.ports import Committed, Compare, Delete, Put

log = logging.getLogger(__name__)


async def join_cluster(
    controller: Controller,
    *,
    endpoints: Sequence[Endpoint],
    rack: str | None = None,
    cluster_id: str | None = None,
    features: Mapping[str, int] | None = None,
    lease: int | None = None,
) -> str:
    """Do all of it; the follower must have been started. ``endpoints`` are the addresses that clients are told, with
    real ports. ``cluster_id``: what the data folder says, if it says something. Returns the cluster's id."""
    found = await found_cluster(controller, cluster_id, features or {})
    await finalize_new(controller, features or {})
    await register(controller, endpoints=endpoints, rack=rack, lease=lease)
    for topic_id in sorted(controller.image.loose):
        await controller.sweep(topic_id)
    await bump_leader_epochs(controller)
    return found


async def found_cluster(controller: Controller, cluster_id: str | None, features: Mapping[str, int]) -> str:
    """Make sure that the cluster has an id, and finalize ``features`` when it is new."""
    wanted = cluster_id or id_text(new_uuid(controller.random))
    deadline = _deadline(controller)
    if not controller.image.cluster_id:
        compares = [Compare(keys.CLUSTER, 0)]
        puts = [Put(keys.CLUSTER, encode(ClusterRow(wanted)))]
        puts += [Put(keys.feature(name), encode(FeatureRow(level))) for name, level in sorted(features.items())]
        outcome = await controller.transact(compares, puts, deadline)
        await controller.follower.wait_for(outcome.revision, timeout_s=TIMEOUT_MS / 1000)
    found = controller.image.cluster_id
    if cluster_id is not None and cluster_id != found:
        raise BrokerError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"the data folder belongs to cluster {cluster_id}, the metadata store to cluster {found}",
        )
    return found


async def finalize_new(controller: Controller, features: Mapping[str, int]) -> None:
    """Finalize what an earlier version of the program did not know. Other brokers might be of such a version still:
    with any of them registered everything stays as it is."""
    image = controller.image
    if any(broker_id != controller.broker_id for broker_id in image.brokers):
        return
    missing = {keys.feature(name): level for name, level in sorted(features.items()) if name not in image.features}
    if missing:
        compares = [Compare(key, 0) for key in missing]
        puts = [Put(key, encode(FeatureRow(level))) for key, level in missing.items()]
        outcome = await controller.transact(compares, puts, _deadline(controller))
        await controller.follower.wait_for(outcome.revision, timeout_s=TIMEOUT_MS / 1000)


async def register(
    controller: Controller, *, endpoints: Sequence[Endpoint], rack: str | None = None, lease: int | None = None
) -> int:
    """Register this incarnation of the broker and return its epoch. A former registration is removed first, so that the
    key is created anew: the revision of its creation is the broker epoch, and grows with every start."""
    key = keys.broker(controller.broker_id)
    incarnation = id_text(new_uuid(controller.random))
    put = Put(key, encode(BrokerRow(tuple(endpoints), incarnation, rack)), lease)
    deadline = _deadline(controller)
    for _ in range(PLANS_MAX):
        revision = controller.image.key_revision(key)
        operation: Put | Delete = Delete(key) if revision else put
        outcome = await controller.transact([Compare(key, revision)], [operation], deadline)
        await controller.follower.wait_for(outcome.revision, timeout_s=TIMEOUT_MS / 1000)
        registered = controller.image.brokers.get(controller.broker_id)
        if registered is not None and registered.incarnation == incarnation:
            return registered.epoch
    raise BrokerError(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        f"somebody else keeps registering as broker {controller.broker_id}",
    )


async def bump_leader_epochs(controller: Controller) -> int:
    """Raise the leader epoch of every partition that this broker leads; returns how many there were."""
    due = {
        (topic.topic_id, index): state.leader_epoch
        for topic in controller.image.topics.values()
        for index, state in enumerate(topic.partitions)
        if state.leader == controller.broker_id
    }
    count = len(due)
    deadline = _deadline(controller)
    for _ in range(PLANS_MAX):
        if not due:
            return count
        last_revision = controller.image.revision
        for some in chunks_of(list(due), fixed_operations=0, operations_each=2):
            part = _bumps(controller, some)
            compares = [Compare(write.key, controller.image.key_revision(write.key)) for write in part]
            outcome = await controller.transact(compares, part, deadline)
            last_revision = max(last_revision, outcome.revision)
            if not isinstance(outcome, Committed):
                log.info("somebody else changes partitions of this broker; looking again")
        await controller.follower.wait_for(last_revision, timeout_s=TIMEOUT_MS / 1000)
        due = {at: epoch for at, epoch in due.items() if _still_at(controller, at, epoch)}
    raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, "the leader epochs could not be raised")


def _bumps(controller: Controller, due: Iterable[tuple[TopicId, int]]) -> list[Put | Delete]:
    image = controller.image
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


def _still_at(controller: Controller, at: tuple[TopicId, int], epoch: int) -> bool:
    name = controller.image.topic_names.get(at[0])
    state: PartitionState | None = controller.image.partition(name, at[1]) if name is not None else None
    return state is not None and state.leader == controller.broker_id and state.leader_epoch == epoch


def _deadline(controller: Controller) -> float:
    return controller.clock.monotonic() + TIMEOUT_MS / 1000
