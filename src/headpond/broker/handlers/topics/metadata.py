"""Metadata: v0-v13.

Behaviour   Brokers are named at the address of the listener that was asked. Topics come as asked for, each once, those
            that exist first; all topics (v0: an empty list, v1+: null) come sorted by name. When one topic is asked for
            by id, names are not looked at.
            A topic that does not exist is created in the background, if the request and ``auto.create.topics.enable``
            say so, and is unknown (3) in this answer. Internal topics are left to those who use them.
            Any broker changes the metadata for everybody, so each names itself as the controller.
Versions    v1 racks, controller, internal topics · v2 cluster id · v4 allow_auto_topic_creation · v5 offline replicas ·
            v6 LISTENER_NOT_FOUND · v7 leader epochs · v8 authorized operations (KIP-430; the cluster's until v10) ·
            v10 topic ids in answers · v12 topics by id · v13 error of the whole request
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.security.authorizer import (
    NOT_ASKED,
    Operation,
    ResourceType,
    authorized_operations,
    cluster_operations,
    is_allowed,
)
from headpond.cluster.image import MetadataImage, TopicImage
from headpond.cluster.names import CLUSTER_METADATA_TOPIC, is_internal, is_valid
from headpond.cluster.rows import PartitionState
from headpond.cluster.topics import NewTopic
from headpond.model import NO_LEADER, ZERO_TOPIC_ID, ErrorCode, TopicId
from headpond.protocol.schema.metadata import MetadataRequest, MetadataResponse

LISTENER_NOT_FOUND_SINCE = 6
CLUSTER_OPERATIONS_UNTIL = 10
BY_ID_SINCE = 12

Topic = MetadataResponse.MetadataResponseTopic
Partition = MetadataResponse.MetadataResponsePartition
Asked = MetadataRequest.MetadataRequestTopic


async def handle(ctx: Context, request: MetadataRequest) -> MetadataResponse:
    asked = None if ctx.version == 0 and not request.topics else request.topics
    if asked is not None:
        error = await _problem(ctx, asked)
        if error is not None:
            return await _refused(ctx, asked, error)
    image = ctx.broker.image
    if asked is None:
        topics = await _all(ctx)
    elif any([topic.topic_id != ZERO_TOPIC_ID async for topic in ctx.in_slices(asked, A_LOOK)]):
        topics = await _by_id(ctx, await ctx.counted(TopicId(topic.topic_id) for topic in asked))
    else:
        topics = await _by_name(ctx, await ctx.counted(topic.name or "" for topic in asked), request)
    if request.include_topic_authorized_operations:
        async for topic in ctx.in_slices(topics):
            if topic.name is not None and topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                topic.topic_authorized_operations = authorized_operations(ctx, ResourceType.TOPIC, topic.name)
    brokers = _brokers(ctx)
    own_id = ctx.broker.settings.broker_id
    return MetadataResponse(
        brokers=brokers,
        cluster_id=image.cluster_id,
        controller_id=own_id if any(broker.node_id == own_id for broker in brokers) else -1,
        topics=topics,
        cluster_authorized_operations=cluster_operations(ctx, asked=request.include_cluster_authorized_operations)
        if ctx.version <= CLUSTER_OPERATIONS_UNTIL
        else NOT_ASKED,
    )


async def _problem(ctx: Context, asked: Sequence[Asked]) -> ErrorCode | None:
    version = ctx.version
    async for topic in ctx.in_slices(asked, A_LOOK):
        if version < BY_ID_SINCE and (topic.name is None or topic.topic_id != ZERO_TOPIC_ID):
            return ErrorCode.INVALID_REQUEST
        if topic.name is None and topic.topic_id == ZERO_TOPIC_ID:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # what a real Kafka makes of neither a name nor an id
    return None


async def _refused(ctx: Context, asked: Sequence[Asked], error: ErrorCode) -> MetadataResponse:
    topics = [
        Topic(error_code=error, name=topic.name or "", topic_id=topic.topic_id) async for topic in ctx.in_slices(asked)
    ]
    return MetadataResponse(topics=topics, error_code=error)


def _brokers(ctx: Context) -> list[MetadataResponse.MetadataResponseBroker]:
    """Those that are up and can be reached through a listener like the asker's."""
    brokers = []
    for broker_id, broker in sorted(ctx.broker.image.brokers.items()):
        endpoint = broker.listeners.get(ctx.listener.name)
        if endpoint is not None and not broker.fenced:
            brokers.append(
                MetadataResponse.MetadataResponseBroker(
                    node_id=broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
                )
            )
    return brokers


async def _all(ctx: Context) -> list[Topic]:
    image = ctx.broker.image
    topics = []
    async for name in ctx.in_slices(sorted(image.topics)):
        topic = image.topics.get(name)  # it may have been deleted since
        if topic is not None and is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, name):
            topics.append(await _topic(ctx, topic))
    return topics


async def _by_id(ctx: Context, ids: Collection[TopicId]) -> list[Topic]:
    image = ctx.broker.image
    unknown, known = [], []
    async for uuid in ctx.in_slices(ids):
        if uuid == ZERO_TOPIC_ID:
            continue
        name = image.topic_names.get(uuid)
        if name is None:
            unknown.append(Topic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=uuid))
        elif is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, name):
            known.append(await _topic(ctx, image.topics[name]))
        else:
            known.append(Topic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=uuid))
    return unknown + known


async def _by_name(ctx: Context, names: Collection[str], request: MetadataRequest) -> list[Topic]:
    image = ctx.broker.image
    creates = request.allow_auto_topic_creation and ctx.broker.settings.topics.auto_create
    existing, missing, hidden = [], [], []
    async for name in ctx.in_slices(names):
        if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, name):
            hidden.append(Topic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name))
        elif name in image.topics:
            existing.append(await _topic(ctx, image.topics[name]))
        else:
            missing.append(
                Topic(error_code=_missing(ctx, name, creates=creates), name=name, is_internal=is_internal(name))
            )
    return existing + missing + hidden


def _missing(ctx: Context, name: str, *, creates: bool) -> ErrorCode:
    if not is_valid(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if creates:
        if not _may_create(ctx, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if not is_internal(name) and name != CLUSTER_METADATA_TOPIC:
            ctx.broker.metadata_writer.create_in_background(NewTopic(name))
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _may_create(ctx: Context, name: str) -> bool:
    return is_allowed(ctx, Operation.CREATE, ResourceType.CLUSTER) or is_allowed(
        ctx, Operation.CREATE, ResourceType.TOPIC, name
    )


async def _topic(ctx: Context, topic: TopicImage) -> Topic:
    image, listener, version = ctx.broker.image, ctx.listener.name, ctx.version
    return Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[
            _partition(image, listener, version, index, state)
            async for index, state in ctx.in_slices(enumerate(topic.partitions))
        ],
    )


def _partition(image: MetadataImage, listener: str, version: int, index: int, state: PartitionState) -> Partition:
    replicas, isr = list(state.replicas), list(state.isr)
    offline = offline_replicas(image, state, listener)
    if version == 0 and offline:  # v0 knows no offline replicas: they are left out, with an error
        replicas = [broker_id for broker_id in replicas if broker_id not in offline]
        isr = [broker_id for broker_id in isr if broker_id not in offline]
    leader = reachable_leader(image, state, listener)
    error = ErrorCode.NONE
    if leader == NO_LEADER:
        has_no_listener = state.leader in image.brokers and version >= LISTENER_NOT_FOUND_SINCE
        error = ErrorCode.LISTENER_NOT_FOUND if has_no_listener else ErrorCode.LEADER_NOT_AVAILABLE
    elif len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return Partition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )


def reachable_leader(image: MetadataImage, state: PartitionState, listener: str) -> int:
    """The leader, if it has a listener like the asker's; else -1."""
    broker = image.brokers.get(state.leader)
    return state.leader if broker is not None and listener in broker.listeners else NO_LEADER


def offline_replicas(image: MetadataImage, state: PartitionState, listener: str) -> list[int]:
    offline = []
    for broker_id in state.replicas:
        broker = image.brokers.get(broker_id)
        if broker is None or broker.fenced or listener not in broker.listeners:
            offline.append(broker_id)
    return offline
