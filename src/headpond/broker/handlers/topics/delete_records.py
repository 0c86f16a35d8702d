"""DeleteRecords: v0-v2.

Behaviour   Moves a partition's log start; whole segments below it are deleted by retention. -1 means the high
            watermark. An offset at or below the log start changes nothing and succeeds. Refused for topics that are
            only compacted, and for internal ones.
Versions    v2 flexible.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.requests.side_by_side import side_by_side
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.cluster.names import is_internal
from headpond.model import BrokerError, ErrorCode, OffsetOutOfRange, TopicPartition
from headpond.protocol.schema.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1

Topic = DeleteRecordsResponse.DeleteRecordsTopicResult
Row = DeleteRecordsResponse.DeleteRecordsPartitionResult


async def handle(ctx: Context, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    # As Kafka answers: each topic and each of its partitions once; of a repeated partition the last offset counts.
    offsets_of: dict[str, dict[int, int]] = {}
    async for topic in ctx.in_slices(request.topics, A_LOOK):
        async for wanted in ctx.in_slices(topic.partitions, A_LOOK):
            offsets_of.setdefault(topic.name, {})[wanted.partition_index] = wanted.offset
    ctx.leave()  # waiting for the disk takes long, and little of the loop

    def row(each: tuple[TopicPartition, int]) -> Awaitable[Row]:
        return _row(ctx, *each)

    answers: dict[str, Topic] = {}
    async for (tp, _), answer in side_by_side(row, _each(offsets_of), ctx.broker.pacing.slices):
        if tp.topic not in answers:
            answers[tp.topic] = Topic(name=tp.topic)
        answers[tp.topic].partitions.append(answer)
    return DeleteRecordsResponse(topics=list(answers.values()))


def _each(offsets_of: Mapping[str, Mapping[int, int]]) -> Iterator[tuple[TopicPartition, int]]:
    for name, offsets in offsets_of.items():
        for index, offset in offsets.items():
            yield TopicPartition(name, index), offset


async def _row(ctx: Context, tp: TopicPartition, offset: int) -> Row:
    try:
        low_watermark = await _delete(ctx, tp, offset)
    except BrokerError as failed:
        return Row(partition_index=tp.partition, low_watermark=NO_LOW_WATERMARK, error_code=failed.code)
    return Row(partition_index=tp.partition, low_watermark=low_watermark)


async def _delete(ctx: Context, tp: TopicPartition, offset: int) -> int:
    if not is_allowed(ctx, Operation.DELETE, ResourceType.TOPIC, tp.topic):
        raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = ctx.broker.replicas.partition(tp)
    if partition is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if is_internal(tp.topic):
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition.require_leader()
    if not partition.log.config.deletes:
        raise BrokerError(ErrorCode.POLICY_VIOLATION)
    await partition.settle()
    partition.require_leader()
    before = partition.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= before <= partition.high_watermark:
        raise OffsetOutOfRange()
    await partition.log.advance_log_start(before)
    return partition.log.log_start_offset
