"""ListGroups: v0-v5.

Behaviour   The groups that this broker coordinates; clients ask every broker. While a part of them is still being
            loaded: COORDINATOR_LOAD_IN_PROGRESS, rather than half a list; COORDINATOR_NOT_AVAILABLE where a part can't
            be loaded. What is listed is committed.
Versions    v4 states (KIP-518) · v5 types (KIP-848); filters in any case, an unknown word matches nothing
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import BrokerError
from headpond.protocol.schema.list_groups import ListGroupsRequest, ListGroupsResponse


async def handle(ctx: Context, request: ListGroupsRequest) -> ListGroupsResponse:
    states = {state.lower().strip() async for state in ctx.in_slices(request.states_filter, A_LOOK)}
    kinds = {kind.lower() async for kind in ctx.in_slices(request.types_filter, A_LOOK)}
    try:
        groups = await ctx.broker.groups.runtime.list_settled(lambda machine: machine.listed(states, kinds), ctx.finish)
    except BrokerError as refused:
        return ListGroupsResponse(error_code=refused.code)
    await ctx.spend(A_LOOK * len(groups))
    if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.CLUSTER):
        groups = [
            group
            async for group in ctx.in_slices(groups, A_LOOK)
            if is_allowed(ctx, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        ]
    return ListGroupsResponse(groups=groups)
