"""ListGroups: v0-v5.

Behaviour   The groups that this broker coordinates; clients ask every broker. While a part of them is still being
            loaded: COORDINATOR_LOAD_IN_PROGRESS, rather than half a list.
Versions    v4 states (KIP-518) · v5 types (KIP-848); filters in any case, an unknown word matches nothing
"""

from __future__ import annotations

from penstock.broker.api import Api
from penstock.broker.context import Context
from penstock.broker.security.authorizer import Operation, ResourceType, is_allowed
from penstock.model import ErrorCode
from penstock.protocol.schema.list_groups import ListGroupsRequest, ListGroupsResponse

API = Api(key=16, versions=range(6), name="ListGroups")


async def handle(ctx: Context, request: ListGroupsRequest) -> ListGroupsResponse:
    runtime = ctx.broker.groups.runtime
    if runtime.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    groups = [
        group
        for machine in runtime.machines()
        for group in machine.listed(states=request.states_filter, kinds=request.types_filter)
    ]
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.CLUSTER):
        groups = [group for group in groups if is_allowed(ctx, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)]
    return ListGroupsResponse(groups=groups)
