"""DescribeProducers: v0.

Behaviour   The producers that a partition remembers, with their last sequence, the timestamp of their last batch and
            where their open transaction began. Each partition succeeds or fails by itself.
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.cluster.names import name_problem
from headpond.model import ErrorCode, TopicPartition, shortened
from headpond.protocol.schema.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from headpond.storage.producers.state import ProducerState

Row = DescribeProducersResponse.PartitionResponse
Described = DescribeProducersResponse.ProducerState


async def handle(ctx: Context, request: DescribeProducersRequest) -> DescribeProducersResponse:
    described: dict[TopicPartition, Row] = {}
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[
                    await _row(ctx, TopicPartition(topic.name, index), described)
                    async for index in ctx.in_slices(topic.partition_indexes)
                ],
            )
            async for topic in ctx.in_slices(request.topics)
        ]
    )


async def _row(ctx: Context, tp: TopicPartition, described: dict[TopicPartition, Row]) -> Row:
    """``described``: partitions with producers. One that is repeated is answered again, and put together once."""
    name, index = tp
    problem = name_problem(name)
    if problem is not None:
        message = shortened(f"Topic name is invalid: {problem}")
        return Row(partition_index=index, error_code=ErrorCode.INVALID_TOPIC_EXCEPTION, error_message=message)
    if not is_allowed(ctx, Operation.READ, ResourceType.TOPIC, name):
        message = "Topic authorization failed."
        return Row(partition_index=index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=message)
    if name not in ctx.broker.image.topics:
        message = "This server does not host this topic-partition."
        return Row(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=message)
    partition = ctx.broker.replicas.partition(tp)
    if partition is None:
        return Row(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not partition.is_leader:
        return Row(partition_index=index, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if tp not in described:
        states = list(partition.log.producers.states())
        row = Row(partition_index=index, active_producers=[_described(each) async for each in ctx.in_slices(states)])
        if not states:
            return row
        described[tp] = row
    return described[tp]


def _described(state: ProducerState) -> Described:
    return Described(
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_start_offset=state.txn_first_offset,
    )
