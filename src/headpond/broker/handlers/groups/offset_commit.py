"""OffsetCommit: v2-v10.

Behaviour   Topics and partitions that do not exist (or may not be read) are refused one by one, the rest is committed
            together; more than 500 partitions in several steps. Answered when the offsets are durable. A group refuses
            all or nothing of a step: members of another generation, clients that are no members while it has members;
            without a group, a commit with generation -1 makes a simple one.
Versions    v2-v4 an age of its own (retention time) · v6 leader epochs (KIP-320) · v7 group.instance.id ·
            v9 member epochs, GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH (KIP-848) · v10 topics by id
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from headpond.broker.handlers.topics.topic_answers import answered_in_parts, merged
from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.coordination.slices import finish_now
from headpond.model import BrokerError, ErrorCode, TopicId
from headpond.protocol.schema.offset_commit import OffsetCommitRequest, OffsetCommitResponse

TOPIC_IDS_SINCE = 10

Asked = OffsetCommitRequest.OffsetCommitRequestTopic
Answered = OffsetCommitResponse.OffsetCommitResponseTopic
Row = OffsetCommitResponse.OffsetCommitResponsePartition


async def handle(ctx: Context, request: OffsetCommitRequest) -> OffsetCommitResponse:
    version = ctx.version

    async def serve(some: list[Asked]) -> tuple[list[Answered], list[Answered]]:
        part = replace(request, topics=some)
        refused = _refuse(ctx, part)
        if not part.topics:
            return refused, []
        try:
            answer = await ctx.broker.groups.write(part.group_id, lambda machine: machine.commit(part, version))
        except BrokerError as failed:
            return refused, _all(part.topics, failed.code)
        return refused, answer.topics

    answers = await answered_in_parts(
        ctx, request.topics, lambda topic, partitions: Asked(topic.name, topic.topic_id, partitions), serve
    )
    return OffsetCommitResponse(topics=answers)


def handle_now(ctx: Context, request: OffsetCommitRequest, reply: Callable[[OffsetCommitResponse], None]) -> bool:
    asked = request.topics
    refused = _refuse(ctx, request)
    if not request.topics:
        reply(OffsetCommitResponse(topics=refused))
        return True

    def done(answer: OffsetCommitResponse | None, failed: BrokerError | None) -> None:
        if failed is not None:
            answer = OffsetCommitResponse(topics=_all(request.topics, failed.code))
        assert answer is not None
        reply(OffsetCommitResponse(topics=finish_now(merged(refused, answer.topics))) if refused else answer)

    version = ctx.version
    if ctx.broker.groups.write_now(request.group_id, lambda machine: machine.commit(request, version), done):
        return True
    request.topics = asked
    return False


def _refuse(ctx: Context, request: OffsetCommitRequest) -> list[Answered]:
    """The answers to what can't be committed; the rest stays in the request, with the names filled in."""
    if not is_allowed(ctx, Operation.READ, ResourceType.GROUP, request.group_id):
        refused, request.topics = _all(request.topics, ErrorCode.GROUP_AUTHORIZATION_FAILED), []
    else:
        refused, request.topics = _sorted_out(ctx, request.topics)
    return refused


def _sorted_out(ctx: Context, topics: Iterable[Asked]) -> tuple[list[Answered], list[Asked]]:
    image = ctx.broker.image
    refused, good = [], []
    for topic in topics:
        if ctx.version >= TOPIC_IDS_SINCE:
            topic.name = image.topic_names.get(TopicId(topic.topic_id), "")
        known = image.topics.get(topic.name)
        if ctx.version >= TOPIC_IDS_SINCE and not topic.name:
            refused += _all([topic], ErrorCode.UNKNOWN_TOPIC_ID)
        elif not is_allowed(ctx, Operation.READ, ResourceType.TOPIC, topic.name):
            refused += _all([topic], ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif known is None:
            refused += _all([topic], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            count = len(known.partitions)
            missing = [each for each in topic.partitions if not 0 <= each.partition_index < count]
            if missing:
                here = [each for each in topic.partitions if 0 <= each.partition_index < count]
                refused += _all([Asked(topic.name, topic.topic_id, missing)], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                topic = Asked(topic.name, topic.topic_id, here)
            if topic.partitions:
                good.append(topic)
    return refused, good


def _all(topics: Iterable[Asked], error: ErrorCode) -> list[Answered]:
    return [
        Answered(topic.name, topic.topic_id, [Row(each.partition_index, error) for each in topic.partitions])
        for topic in topics
    ]
