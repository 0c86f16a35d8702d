"""OffsetFetch: v1-v10.

Behaviour   The last committed offset of each partition; -1, without an error, where there is none, also for groups and
            topics that do not exist. What is answered is durable. With ``require_stable`` a partition whose offset is
            in an open transaction is UNSTABLE_OFFSET_COMMIT, which consumers retry.
Versions    v2 all partitions (null), error of the group · v5 leader epochs · v7 require_stable (KIP-447) ·
            v8 several groups (KIP-709) · v9 member id and epoch (KIP-848) · v10 topics by id
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK, A_ROW
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import ZERO_TOPIC_ID, BrokerError, ErrorCode, TopicId
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

GROUP_ERROR_SINCE = 2
SEVERAL_GROUPS_SINCE = 8
TOPIC_IDS_SINCE = 10

AskedGroup = OffsetFetchRequest.OffsetFetchRequestGroup
AskedTopic = OffsetFetchRequest.OffsetFetchRequestTopics
Group = OffsetFetchResponse.OffsetFetchResponseGroup
Topic = OffsetFetchResponse.OffsetFetchResponseTopics
Row = OffsetFetchResponse.OffsetFetchResponsePartitions


async def handle(ctx: Context, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if ctx.version >= SEVERAL_GROUPS_SINCE:
        groups = [
            await _group(ctx, asked, request.require_stable) async for asked in ctx.in_slices(request.groups, 2 * A_ROW)
        ]
        return OffsetFetchResponse(groups=groups)
    topics = request.topics
    asked = AskedGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [
            AskedTopic(name=topic.name, partition_indexes=topic.partition_indexes)
            async for topic in ctx.in_slices(topics)
        ],
    )
    return await _as_one_group(ctx, await _group(ctx, asked, request.require_stable))


async def _group(ctx: Context, asked: AskedGroup, require_stable: bool) -> Group:
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.GROUP, asked.group_id):
        return await _failed(ctx, asked, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: list[Topic] = []
    wanted = asked
    if asked.topics is not None:
        refused, allowed = await _sorted_out(ctx, asked.topics)
        wanted = AskedGroup(asked.group_id, asked.member_id, asked.member_epoch, allowed)
    try:
        found = await ctx.broker.groups.settled(
            asked.group_id, lambda machine: machine.offsets.fetch(wanted, require_stable=require_stable), ctx.finish
        )
    except BrokerError as error:
        # Consumers before 3.9 do not expect it here; with NOT_COORDINATOR they look again.
        is_unexpected = error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        return await _failed(ctx, asked, ErrorCode.NOT_COORDINATOR if is_unexpected else error.code)
    await ctx.spend(A_LOOK * sum([len(topic.partitions) async for topic in ctx.in_slices(found.topics, A_LOOK)]))
    if asked.topics is None:
        found.topics = await _visible(ctx, found.topics)
    found.topics += refused
    return found


async def _sorted_out(ctx: Context, topics: list[AskedTopic]) -> tuple[list[Topic], list[AskedTopic]]:
    refused, allowed = [], []
    async for topic in ctx.in_slices(topics):
        if ctx.version >= TOPIC_IDS_SINCE:
            topic.name = ctx.broker.image.topic_names.get(TopicId(topic.topic_id), "")
        if ctx.version >= TOPIC_IDS_SINCE and not topic.name:
            refused.append(await _refused(ctx, topic, ErrorCode.UNKNOWN_TOPIC_ID))
        elif not is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            refused.append(await _refused(ctx, topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            allowed.append(topic)
    return refused, allowed


async def _visible(ctx: Context, topics: list[Topic]) -> list[Topic]:
    """Of all the group's topics those that the asker may see; by id, those that have one."""
    kept = []
    async for topic in ctx.in_slices(topics):
        known = ctx.broker.image.topics.get(topic.name)
        topic.topic_id = ZERO_TOPIC_ID if known is None else known.topic_id
        has_a_place = ctx.version < TOPIC_IDS_SINCE or known is not None
        if has_a_place and is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            kept.append(topic)
    return kept


async def _refused(ctx: Context, topic: AskedTopic, error: ErrorCode) -> Topic:
    rows = [Row(index, -1, error_code=error) async for index in ctx.in_slices(topic.partition_indexes)]
    return Topic(topic.name, topic.topic_id, rows)


async def _failed(ctx: Context, asked: AskedGroup, error: ErrorCode) -> Group:
    if ctx.version >= GROUP_ERROR_SINCE:
        return Group(group_id=asked.group_id, error_code=error)
    topics = [await _refused(ctx, topic, error) async for topic in ctx.in_slices(asked.topics or ())]
    return Group(group_id=asked.group_id, topics=topics)


async def _as_one_group(ctx: Context, group: Group) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        row.partition_index,
                        row.committed_offset,
                        row.committed_leader_epoch,
                        row.metadata,
                        row.error_code,
                    )
                    async for row in ctx.in_slices(topic.partitions, A_ROW // 4)
                ],
            )
            async for topic in ctx.in_slices(group.topics)
        ],
    )
