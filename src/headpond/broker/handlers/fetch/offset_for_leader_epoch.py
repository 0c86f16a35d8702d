"""OffsetForLeaderEpoch: v2-v4.

Behaviour   Where an epoch ends in this log: the largest epoch not above the asked one, and its end offset (KIP-279).
            A consumer finds out by it whether what it has read was truncated (KIP-320).
Versions    v3 replica id · v4 flexible.
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import BrokerError, ErrorCode, TopicPartition
from headpond.protocol.schema.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

NO_EPOCH = -1

Row = OffsetForLeaderEpochResponse.EpochEndOffset


async def handle(ctx: Context, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_row(ctx, topic.topic, wanted) async for wanted in ctx.in_slices(topic.partitions)],
            )
            async for topic in ctx.in_slices(request.topics)
        ]
    )


def _row(ctx: Context, topic: str, wanted: OffsetForLeaderEpochRequest.OffsetForLeaderPartition) -> Row:
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, topic):
        return Row(partition=wanted.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = ctx.broker.replicas.partition(TopicPartition(topic, wanted.partition))
    if partition is None:
        return Row(partition=wanted.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if wanted.current_leader_epoch < NO_EPOCH:  # only -1 stands for none here; a fetch takes any below zero for it
        return Row(partition=wanted.partition, error_code=ErrorCode.FENCED_LEADER_EPOCH)
    try:
        partition.require_leader(wanted.current_leader_epoch)
    except BrokerError as failed:
        return Row(partition=wanted.partition, error_code=failed.code)
    log = partition.log
    epoch, end_offset = log.epochs.end_offset_for(wanted.leader_epoch, log.log_end_offset)
    return Row(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
