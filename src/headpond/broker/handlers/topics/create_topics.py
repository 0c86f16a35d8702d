"""CreateTopics: v2-v7.

Behaviour   Each topic succeeds or fails by itself. A name that comes twice fails once, with INVALID_REQUEST. More than
            10,000 partitions in one request are refused as a whole. A time-out of zero or less is up before anything
            was tried. When the time runs out later, the topic may exist all the same: REQUEST_TIMED_OUT means unknown.
            ``validate_only`` answers as if, and changes nothing.
Versions    v4 default partitions and replication (-1) · v5 the new topic's settings in the answer (KIP-525) ·
            v6 quota errors · v7 topic ids
Not done    create.topic.policy.class.name, controller mutation quotas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headpond.broker.handlers.configs.resources import effective_now
from headpond.broker.handlers.topics.assignments import assigned
from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK, A_ROW
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.cluster.names import CLUSTER_METADATA_TOPIC
from headpond.cluster.topics import PARTITIONS_PER_REQUEST_MAX, Assignment, NewTopic, PlannedTopic
from headpond.config.dynamic import describe_topic
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.create_topics import CreateTopicsRequest, CreateTopicsResponse

SETTINGS_SINCE = 5
A_PLAN = 20 * A_ROW
"""What it costs to plan a topic, besides its partitions and settings."""

Wanted = CreateTopicsRequest.CreatableTopic
Result = CreateTopicsResponse.CreatableTopicResult
Setting = CreateTopicsResponse.CreatableTopicConfigs


async def handle(ctx: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    if request.timeout_ms <= 0:
        return await _all_failed(ctx, request.topics, ErrorCode.REQUEST_TIMED_OUT, None)
    times = await ctx.counted(topic.name for topic in request.topics)
    creatable, refused = [], []
    async for topic in ctx.in_slices(request.topics):
        if times[topic.name] == 1:
            problem = _refusal(ctx, topic.name)
            if problem is None:
                creatable.append(topic)
            else:
                refused.append(problem)
    twice = [
        _failed(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        async for name, count in ctx.in_slices(times.items(), A_LOOK)
        if count > 1
    ]
    too_large = await _too_large(ctx, creatable)
    if too_large is not None:
        response = await _all_failed(ctx, creatable, ErrorCode.POLICY_VIOLATION, too_large)
    else:
        response = CreateTopicsResponse(topics=await _create(ctx, creatable, request))
    response.topics += twice + refused
    return response


async def _all_failed(
    ctx: Context, topics: Sequence[Wanted], error: ErrorCode, message: str | None
) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_failed(each.name, error, message) async for each in ctx.in_slices(topics)])


def _refusal(ctx: Context, name: str) -> Result | None:
    if name == CLUSTER_METADATA_TOPIC:
        message = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
        return _failed(name, ErrorCode.INVALID_REQUEST, message)
    if is_allowed(ctx, Operation.CREATE, ResourceType.CLUSTER) or is_allowed(
        ctx, Operation.CREATE, ResourceType.TOPIC, name
    ):
        return None
    return _failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


async def _too_large(ctx: Context, topics: Sequence[Wanted]) -> str | None:
    """Kafka counts twice: the partitions that are asked for, then all the records of the change."""
    default_partitions = ctx.broker.settings.topics.partitions
    partitions = others = 0
    async for topic in ctx.in_slices(topics, A_LOOK):
        others += 1 + len(topic.configs)
        if topic.assignments:
            partitions += len(topic.assignments)
        else:
            partitions += default_partitions if topic.num_partitions == -1 else max(0, topic.num_partitions)
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        return "Excessively large number of partitions per request."
    if partitions + others > PARTITIONS_PER_REQUEST_MAX:
        return "Unable to perform excessively large batch operation."
    return None


async def _create(ctx: Context, topics: Sequence[Wanted], request: CreateTopicsRequest) -> list[Result]:
    deadline = ctx.broker.clock.monotonic() + request.timeout_ms / 1000
    results = []
    async for topic in ctx.in_slices(topics, A_PLAN):
        left_ms = max(0, round((deadline - ctx.broker.clock.monotonic()) * 1000))
        try:
            planned = await ctx.broker.metadata_writer.create_topic(
                await _new_topic(ctx, topic), validate_only=request.validate_only, timeout_ms=left_ms
            )
        except BrokerError as error:
            results.append(_failed(topic.name, error.code, error.message or None))
        else:
            results.append(_created(ctx, planned))
            await ctx.spend(A_ROW * (len(planned.partitions) + len(results[-1].configs or ())))
    return results


async def _new_topic(ctx: Context, topic: Wanted) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple(
            [
                Assignment(each.partition_index, await assigned(ctx, each.broker_ids))
                async for each in ctx.in_slices(topic.assignments, A_LOOK)
            ]
        ),
        tuple((config.name, config.value) for config in topic.configs),
    )


def _created(ctx: Context, topic: PlannedTopic) -> Result:
    result = Result(name=topic.name, topic_id=topic.topic_id, error_message=None)
    if not is_allowed(ctx, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return result
    result.num_partitions = len(topic.partitions)
    result.replication_factor = topic.replication_factor
    if ctx.version >= SETTINGS_SINCE:
        result.configs = _settings(ctx, topic.configs)
    return result


def _settings(ctx: Context, overrides: Mapping[str, str]) -> list[Setting]:
    """What the new topic obeys, with where each value comes from, sorted by name. As in Kafka this is not quite what
    DescribeConfigs says: the topic's own values are as they were written, and ``log.retention.hours`` is a source."""
    effective = effective_now(ctx.broker)
    return [
        Setting(
            name=row.name,
            value=overrides.get(row.name, row.value),
            read_only=row.read_only,
            config_source=row.source if row.name in overrides else effective.topic_source(row.name),
            is_sensitive=row.is_sensitive,
        )
        for row in sorted(describe_topic(overrides, effective, None))
    ]


def _failed(name: str, error: ErrorCode, message: str | None) -> Result:
    return Result(name=name, error_code=error, error_message=message)
