"""ElectLeaders: v0-v2.

Behaviour   Every partition has one replica, which leads it: ELECTION_NOT_NEEDED for each that is asked for. Asked for
            all (null), partitions that need none are left out, and their topics are listed without any, as in Kafka. A
            time-out of zero or less is up before anything was tried.
Versions    v1 the kind of election and a top-level error (KIP-460) · v2 flexible.
Not done    elections: they come with replication.
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import ErrorCode
from headpond.protocol.schema.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

PREFERRED, UNCLEAN = 0, 1
KIND_SINCE = 1

Topic = ElectLeadersResponse.ReplicaElectionResult
Result = ElectLeadersResponse.PartitionResult


async def handle(ctx: Context, request: ElectLeadersRequest) -> ElectLeadersResponse:
    if not is_allowed(ctx, Operation.ALTER, ResourceType.CLUSTER):
        return await _refused(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    if request.election_type not in (PREFERRED, UNCLEAN):
        return await _refused(ctx, request, ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    if request.timeout_ms <= 0:
        return await _refused(ctx, request, ErrorCode.REQUEST_TIMED_OUT, None)
    if request.topic_partitions is None:
        results = [Topic(topic=name) async for name in ctx.in_slices(sorted(ctx.broker.image.topics), A_LOOK)]
    else:
        results = [
            Topic(
                topic=each.topic,
                partition_result=[_result(ctx, each.topic, index) async for index in ctx.in_slices(each.partitions)],
            )
            async for each in ctx.in_slices(request.topic_partitions)
        ]
    return ElectLeadersResponse(replica_election_results=results)


def _result(ctx: Context, name: str, index: int) -> Result:
    topic = ctx.broker.image.topics.get(name)
    if topic is None:
        return Result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= index < len(topic.partitions):
        return Result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    return Result(index, ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")


async def _refused(
    ctx: Context, request: ElectLeadersRequest, error: ErrorCode, message: str | None
) -> ElectLeadersResponse:
    """The same for everything that was asked for, and for the request where the version has a place for that."""
    return ElectLeadersResponse(
        error_code=error if ctx.version >= KIND_SINCE else ErrorCode.NONE,
        replica_election_results=[
            Topic(
                topic=each.topic,
                partition_result=[Result(index, error, message) async for index in ctx.in_slices(each.partitions)],
            )
            async for each in ctx.in_slices(request.topic_partitions or ())
        ],
    )
