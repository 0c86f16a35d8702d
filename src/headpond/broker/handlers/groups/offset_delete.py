"""OffsetDelete: v0.

Behaviour   Forgets a group's offsets of some partitions. Topics that a member subscribes to are left alone:
            GROUP_SUBSCRIBED_TO_TOPIC; where it can't be known what members read (other protocols than consumers'),
            the group must be empty. More than 500 partitions go in several steps; what fails after the first one is
            told of each partition, unless the whole request may be sent again: that is how clients take these errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from headpond.broker.handlers.topics.topic_answers import answered_in_parts
from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

Asked = OffsetDeleteRequest.OffsetDeleteRequestTopic
Topic = OffsetDeleteResponse.OffsetDeleteResponseTopic
Row = OffsetDeleteResponse.OffsetDeleteResponsePartition


ASK_AGAIN = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


async def handle(ctx: Context, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    if not is_allowed(ctx, Operation.DELETE, ResourceType.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)

    is_first = True

    async def serve(some: list[Asked]) -> tuple[list[Topic], list[Topic]]:
        nonlocal is_first
        refused, good = _sorted_out(ctx, some)
        part = replace(request, topics=good)
        try:
            answer = await ctx.broker.groups.write(request.group_id, lambda machine: machine.offsets.delete(part))
        except BrokerError as failed:
            if is_first or failed.code in ASK_AGAIN:
                raise
            return refused, [_refused(topic.name, topic.partitions, failed.code) for topic in good]
        is_first = False
        return refused, answer.topics

    try:
        answers = await answered_in_parts(
            ctx, request.topics, lambda topic, partitions: Asked(topic.name, partitions), serve
        )
    except BrokerError as failed:
        return OffsetDeleteResponse(error_code=failed.code)
    return OffsetDeleteResponse(topics=answers)


def _sorted_out(ctx: Context, topics: Sequence[Asked]) -> tuple[list[Topic], list[Asked]]:
    refused, good = [], []
    for topic in topics:
        known = ctx.broker.image.topics.get(topic.name)
        if not is_allowed(ctx, Operation.READ, ResourceType.TOPIC, topic.name):
            refused.append(_refused(topic.name, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif known is None:
            refused.append(_refused(topic.name, topic.partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            here = [each for each in topic.partitions if 0 <= each.partition_index < len(known.partitions)]
            missing = [each for each in topic.partitions if not 0 <= each.partition_index < len(known.partitions)]
            if missing:
                refused.append(_refused(topic.name, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            if here:
                good.append(Asked(topic.name, here))
    return refused, good


def _refused(
    name: str, partitions: Sequence[OffsetDeleteRequest.OffsetDeleteRequestPartition], error: ErrorCode
) -> Topic:
    return Topic(name, [Row(each.partition_index, error) for each in partitions])
