"""ListPartitionReassignments: v0.

Behaviour   Replicas never move: nothing is under way, whatever is asked for. As in Kafka, partitions that do not exist
            are no error.
Not done    reassignments: AlterPartitionReassignments is not advertised.
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import ErrorCode
from headpond.protocol.schema.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


async def handle(ctx: Context, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.CLUSTER):
        return ListPartitionReassignmentsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    return ListPartitionReassignmentsResponse(error_message=None)
