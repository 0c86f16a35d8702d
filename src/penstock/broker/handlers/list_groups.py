"""ListGroups: v0-v5.

Behaviour   The groups that this broker coordinates; clients ask every broker. While a part of them is still being
            loaded: COORDINATOR_LOAD_IN_PROGRESS, rather than half a list; COORDINATOR_NOT_AVAILABLE where a part can't
            be loaded. What is listed is committed.
Versions    v4 states (KIP-518) · v5 types (KIP-848); filters in any case, an unknown word matches nothing
"""

from __future__ import annotations

from penstock.broker.api import Api
from penstock.broker.context import Context
from penstock.broker.security.authorizer import Operation, ResourceType, is_allowed
from penstock.model import BrokerError
from penstock.protocol.schema.list_groups import ListGroupsRequest, ListGroupsResponse

API = Api(key=16, versions=range(6), name="ListGroups")


async def handle(ctx: Context, request: ListGroupsRequest) -> ListGroupsResponse:
    try:
        groups = await ctx.broker.groups.runtime.list_settled(
            lambda machine: machine.listed(states=request.states_filter, kinds=request.types_filter)
        )
    except BrokerError as refused:
        return ListGroupsResponse(error_code=refused.code)
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.CLUSTER):
        groups = [group for group in groups if is_allowed(ctx, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)]
    return ListGroupsResponse(groups=groups)
