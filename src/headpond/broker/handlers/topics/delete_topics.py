"""DeleteTopics: v1-v6.

Behaviour   By name, from v6 on also by id; each topic succeeds or fails by itself. What is named twice, or both by name
            and by id, is refused, and not deleted either. A time-out of zero or less is up before anything was tried.
            The topic is gone from the metadata when the answer says so; its files follow.
Versions    v3 TOPIC_DELETION_DISABLED · v5 error messages (KIP-599) · v6 topic ids
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import ZERO_TOPIC_ID, BrokerError, ErrorCode, TopicId
from headpond.protocol.schema.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

DELETION_DISABLED_SINCE = 3

Result = DeleteTopicsResponse.DeletableTopicResult
State = DeleteTopicsRequest.DeleteTopicState


async def handle(ctx: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    asked = [State(name=name) async for name in ctx.in_slices(request.topic_names, A_LOOK)] or request.topics
    error = _refusal(ctx, request.timeout_ms)
    if error is not None:
        late = [_result(each.name, TopicId(each.topic_id), error, None) async for each in ctx.in_slices(asked)]
        return DeleteTopicsResponse(responses=late)
    results, by_id, by_name = await _sorted_out(ctx, asked)
    found = await _find(ctx, by_id, by_name, results)
    deadline = ctx.broker.clock.monotonic() + request.timeout_ms / 1000
    async for topic_id, name in ctx.in_slices(found.items()):
        left_ms = max(0, round((deadline - ctx.broker.clock.monotonic()) * 1000))
        try:
            await ctx.broker.metadata_writer.delete_topic(topic_id, timeout_ms=left_ms)
        except BrokerError as failed:
            results.append(_result(name, topic_id, failed.code, failed.message or None))
        else:
            results.append(_result(name, topic_id, ErrorCode.NONE, None))
    return DeleteTopicsResponse(responses=results)


def _refusal(ctx: Context, timeout_ms: int) -> ErrorCode | None:
    if not ctx.broker.settings.topics.deletion:
        if ctx.version < DELETION_DISABLED_SINCE:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.TOPIC_DELETION_DISABLED
    return ErrorCode.REQUEST_TIMED_OUT if timeout_ms <= 0 else None


async def _sorted_out(ctx: Context, asked: list[State]) -> tuple[list[Result], list[TopicId], list[str]]:
    """What can't be meant, and the ids and names that can."""
    results: list[Result] = []
    ids: dict[TopicId, int] = {}
    names: dict[str, int] = {}
    async for state in ctx.in_slices(asked):
        topic_id = TopicId(state.topic_id)
        if state.name is None and topic_id == ZERO_TOPIC_ID:
            results.append(_invalid(None, topic_id, "Neither topic name nor id were specified."))
        elif state.name is not None and topic_id != ZERO_TOPIC_ID:
            results.append(_invalid(state.name, topic_id, "You may not specify both topic name and topic id."))
        elif state.name is not None:
            names[state.name] = names.get(state.name, 0) + 1
        else:
            ids[topic_id] = ids.get(topic_id, 0) + 1
    single_names, single_ids = [], []
    async for name, times in ctx.in_slices(names.items(), A_LOOK):
        if times == 1:
            single_names.append(name)
        else:
            results.append(_invalid(name, ZERO_TOPIC_ID, "Duplicate topic name."))
    async for topic_id, times in ctx.in_slices(ids.items(), A_LOOK):
        if times == 1:
            single_ids.append(topic_id)
        else:
            results.append(_invalid(None, topic_id, "Duplicate topic id."))
    return results, single_ids, single_names


async def _find(ctx: Context, ids: list[TopicId], names: list[str], results: list[Result]) -> dict[TopicId, str]:
    """The topics to delete; what is wrong with the others is added to ``results``. Whoever may not describe a topic
    learns neither its id nor its name nor whether it exists."""
    image = ctx.broker.image
    found: dict[TopicId, str] = {}
    async for topic_id in ctx.in_slices(ids):
        name = image.topic_names.get(topic_id)
        if name is None:
            message = "This server does not host this topic ID."
            results.append(_result(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, message))
        elif not _may(ctx, Operation.DELETE, name):
            shown = name if _may(ctx, Operation.DESCRIBE, name) else None
            results.append(_result(shown, topic_id, *_UNAUTHORIZED))
        else:
            found[topic_id] = name
    given = set(found)
    async for name in ctx.in_slices(names):
        topic = image.topics.get(name)
        if not _may(ctx, Operation.DESCRIBE, name):
            results.append(_result(name, ZERO_TOPIC_ID, *_UNAUTHORIZED))
        elif topic is None:
            message = "This server does not host this topic-partition."
            results.append(_result(name, ZERO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message))
        elif not _may(ctx, Operation.DELETE, name):
            results.append(_result(name, ZERO_TOPIC_ID, *_UNAUTHORIZED))
        elif topic.topic_id in given:
            found.pop(topic.topic_id, None)
            message = "The provided topic name maps to an ID that was already supplied."
            results.append(_invalid(name, topic.topic_id, message))
        else:
            found[topic.topic_id] = name
    return found


_UNAUTHORIZED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")


def _may(ctx: Context, operation: Operation, name: str) -> bool:
    return is_allowed(ctx, Operation.DELETE, ResourceType.CLUSTER) or is_allowed(
        ctx, operation, ResourceType.TOPIC, name
    )


def _invalid(name: str | None, topic_id: TopicId, message: str) -> Result:
    return _result(name, topic_id, ErrorCode.INVALID_REQUEST, message)


def _result(name: str | None, topic_id: TopicId, error: ErrorCode, message: str | None) -> Result:
    return Result(name=name, topic_id=topic_id, error_code=error, error_message=message)
