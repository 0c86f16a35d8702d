"""ConsumerGroupHeartbeat: v0-v1.

Behaviour   Joining, staying, subscribing, giving up partitions and leaving are all heartbeats (KIP-848); what a group
            does with one is told in ``coordination/groups/consumer/heartbeat.py``.
Versions    v1 subscriptions by regular expression; the member makes its id itself (KIP-1082)
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

NAMED_MAX = 20_000
"""Topics that a member subscribes to by name, and partitions that it says it owns. They are one record of the group and
compared at a stretch, in some milliseconds."""


async def handle(ctx: Context, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    if not is_served(ctx):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not is_allowed(ctx, Operation.READ, ResourceType.GROUP, request.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    names = request.subscribed_topic_names or ()
    owned = sum(len(topic.partitions) for topic in (request.topic_partitions or ())[:NAMED_MAX])
    if max(len(names), len(request.topic_partitions or ()), owned) > NAMED_MAX:
        message = f"A member may name {NAMED_MAX} topics and partitions."
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=message)
    if not all(is_allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    version, client_id, client_host = ctx.version, ctx.client_id or "", f"/{ctx.peer_host}"
    try:
        return await ctx.broker.groups.write(
            request.group_id,
            lambda machine: machine.consumer.heartbeat(
                request, version=version, client_id=client_id, client_host=client_host
            ),
        )
    except BrokerError as failed:
        return ConsumerGroupHeartbeatResponse(error_code=failed.code, error_message=failed.message or None)


def is_served(ctx: Context) -> bool:
    """Unless somebody has turned the protocol off: the feature for the cluster, or
    ``group.coordinator.rebalance.protocols`` for this broker."""
    return ctx.broker.groups.settings().has_consumer_groups and ctx.broker.image.features.get("group.version", 1) >= 1
