"""DescribeLogDirs: v1-v5.

Behaviour   The data folder with its space and the size of each partition's log; a null list of topics means all.
Versions    v2 flexible · v3 top-level error · v4 total and usable bytes (KIP-827) · v5 cordoned folders (KIP-1066:
            never here).
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.schema.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse


async def handle(ctx: Context, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.CLUSTER):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    logs = ctx.broker.logs
    wanted = await _wanted(ctx, request)
    topics: dict[str, DescribeLogDirsResponse.DescribeLogDirsTopic] = {}
    async for replica in ctx.in_slices(list(ctx.broker.replicas)):
        log = replica.partition.log
        if wanted is not None and log.tp not in wanted:
            continue
        topic = topics.setdefault(log.tp.topic, DescribeLogDirsResponse.DescribeLogDirsTopic(name=log.tp.topic))
        topic.partitions.append(
            DescribeLogDirsResponse.DescribeLogDirsPartition(
                partition_index=log.tp.partition, partition_size=log.size_bytes
            )
        )
    total_bytes, free_bytes = await logs.space()
    folder = DescribeLogDirsResponse.DescribeLogDirsResult(
        log_dir=logs.data_dir, topics=list(topics.values()), total_bytes=total_bytes, usable_bytes=free_bytes
    )
    return DescribeLogDirsResponse(results=[folder])


async def _wanted(ctx: Context, request: DescribeLogDirsRequest) -> set[TopicPartition] | None:
    if request.topics is None:
        return None
    return {
        TopicPartition(topic.topic, index)
        async for topic in ctx.in_slices(request.topics)
        async for index in ctx.in_slices(topic.partitions, A_LOOK)
    }
