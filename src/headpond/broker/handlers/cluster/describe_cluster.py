"""DescribeCluster: v0-v2.

Behaviour   The brokers at the address of the listener that was asked. Controllers are not a kind of endpoint here:
            brokers do their work, so asking for them gets MISMATCHED_ENDPOINT_TYPE, as from any Kafka broker.
Versions    v1 endpoint type (KIP-919) · v2 fenced brokers (KIP-1073)
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import cluster_operations
from headpond.model import ErrorCode
from headpond.protocol.schema.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

BROKER_ENDPOINT, CONTROLLER_ENDPOINT = 1, 2


async def handle(ctx: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLER_ENDPOINT:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER",
        )
    if request.endpoint_type != BROKER_ENDPOINT:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    brokers = []
    for broker_id, broker in sorted(ctx.broker.image.brokers.items()):
        endpoint = broker.listeners.get(ctx.listener.name)
        if endpoint is not None and (request.include_fenced_brokers or not broker.fenced):
            brokers.append(
                DescribeClusterResponse.DescribeClusterBroker(
                    broker_id=broker_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    is_fenced=broker.fenced,
                )
            )
    own_id = ctx.broker.settings.broker_id
    return DescribeClusterResponse(
        cluster_id=ctx.broker.image.cluster_id,
        controller_id=own_id if any(broker.broker_id == own_id for broker in brokers) else -1,
        brokers=brokers,
        cluster_authorized_operations=cluster_operations(ctx, asked=request.include_cluster_authorized_operations),
    )
