"""CreatePartitions: v0-v3.

Behaviour   Each topic succeeds or fails by itself; one that is named twice fails once. ``validate_only`` changes
            nothing. A time-out of zero or less is up before anything was tried.
Differs     More than 10,000 new partitions get POLICY_VIOLATION with a message, as in CreateTopics; Kafka answers -1.
Not done    controller mutation quotas (v3).
"""

from __future__ import annotations

from headpond.broker.handlers.topics.assignments import assigned
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK, A_ROW
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.cluster.topics import MorePartitions
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

Wanted = CreatePartitionsRequest.CreatePartitionsTopic
Result = CreatePartitionsResponse.CreatePartitionsTopicResult


async def handle(ctx: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    if request.timeout_ms <= 0:
        late = [_failed(topic.name, ErrorCode.REQUEST_TIMED_OUT) async for topic in ctx.in_slices(request.topics)]
        return CreatePartitionsResponse(results=late)
    deadline = ctx.broker.clock.monotonic() + request.timeout_ms / 1000
    times = await ctx.counted(topic.name for topic in request.topics)
    results = [
        _failed(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        async for name, count in ctx.in_slices(times.items(), A_LOOK)
        if count > 1
    ]
    async for topic in ctx.in_slices(request.topics, 2 * A_ROW):
        if times[topic.name] > 1:
            continue
        if is_allowed(ctx, Operation.ALTER, ResourceType.TOPIC, topic.name):
            results.append(await _enlarge(ctx, topic, request.validate_only, deadline))
        else:
            results.append(_failed(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    return CreatePartitionsResponse(results=results)


async def _enlarge(ctx: Context, topic: Wanted, validate_only: bool, deadline: float) -> Result:
    assignments = None
    if topic.assignments is not None:
        assignments = tuple(
            [await assigned(ctx, each.broker_ids) async for each in ctx.in_slices(topic.assignments, A_LOOK)]
        )
    wanted = MorePartitions(topic.name, topic.count, assignments)
    left_ms = max(0, round((deadline - ctx.broker.clock.monotonic()) * 1000))
    try:
        await ctx.broker.metadata_writer.create_partitions(wanted, validate_only=validate_only, timeout_ms=left_ms)
    except BrokerError as error:
        return _failed(topic.name, error.code, error.message or None)
    return Result(name=topic.name)


def _failed(name: str, error: ErrorCode, message: str | None = None) -> Result:
    return Result(name=name, error_code=error, error_message=message)
