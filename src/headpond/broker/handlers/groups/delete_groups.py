"""DeleteGroups: v0-v2.

Behaviour   Each group succeeds or fails by itself; a name that comes twice counts once. A group goes with its offsets,
            if nobody is in it.
Versions    v2 flexible.
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

Row = DeleteGroupsResponse.DeletableGroupResult


async def handle(ctx: Context, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    rows, refused = [], []
    async for group_id in ctx.in_slices(await ctx.counted(request.groups_names)):
        if is_allowed(ctx, Operation.DELETE, ResourceType.GROUP, group_id):
            rows.append(Row(group_id, await _delete(ctx, group_id)))
        else:
            refused.append(Row(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    return DeleteGroupsResponse(results=rows + refused)


async def _delete(ctx: Context, group_id: str) -> ErrorCode:
    try:
        while not await ctx.broker.groups.write(group_id, lambda machine: machine.delete(group_id)):
            pass  # very many offsets go in steps
    except BrokerError as failed:
        return failed.code
    return ErrorCode.NONE
