"""DescribeGroups: v0-v6.

Behaviour   Classic groups and their members. A group that is not there, or is not a classic one, is "Dead". What is
            told is committed.
Versions    v3 authorized operations (KIP-430) · v4 group.instance.id · v6 GROUP_ID_NOT_FOUND with a message (KIP-1043)
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_ROW
from headpond.broker.security.authorizer import Operation, ResourceType, authorized_operations, is_allowed
from headpond.coordination.slices import in_one_slice
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

OPERATIONS_SINCE = 3

Row = DescribeGroupsResponse.DescribedGroup


async def handle(ctx: Context, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    rows, refused = [], []
    with_members: dict[str, Row] = {}
    async for group_id in ctx.in_slices(request.groups):
        if not is_allowed(ctx, Operation.DESCRIBE, ResourceType.GROUP, group_id):
            refused.append(Row(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id))
            continue
        row = with_members.get(group_id)
        if row is None:
            row = await _described(ctx, group_id)
            if request.include_authorized_operations and ctx.version >= OPERATIONS_SINCE and not row.error_code:
                row.authorized_operations = authorized_operations(ctx, ResourceType.GROUP, group_id)
            if row.members:  # a name that is repeated is answered again, and put together once
                with_members[group_id] = row
                await ctx.spend(A_ROW * len(row.members))
        rows.append(row)
    return DescribeGroupsResponse(groups=refused + rows)


async def _described(ctx: Context, group_id: str) -> Row:
    version = ctx.version
    try:
        return await ctx.broker.groups.settled(
            group_id,
            lambda machine: in_one_slice(lambda: machine.classic.describe(group_id, version=version)),
            ctx.finish,
        )
    except BrokerError as failed:
        return Row(error_code=failed.code, group_id=group_id)
