"""LeaveGroup: v0-v5.

Behaviour   Members leave at once rather than with their session's end; the rest is told to join again.
Versions    v3 several members, also by group.instance.id alone (KIP-345) · v5 reasons (KIP-800)
"""

from __future__ import annotations

from functools import partial

from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.coordination.groups.classic.leave import left as all_left
from headpond.coordination.groups.machine import GroupMachine
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.leave_group import LeaveGroupRequest, LeaveGroupResponse

MEMBERS_AT_ONCE = 250
"""More members leave in several steps, each with a rebalance of its own; each member is told of its own step."""


async def handle(ctx: Context, request: LeaveGroupRequest) -> LeaveGroupResponse:
    if not is_allowed(ctx, Operation.READ, ResourceType.GROUP, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    version = ctx.version
    response = LeaveGroupResponse()
    async for some in ctx.in_parts(request.members, MEMBERS_AT_ONCE):
        part = LeaveGroupRequest(group_id=request.group_id, member_id=request.member_id, members=list(some))
        leave = partial(GroupMachine.leave, request=part, version=version)
        try:
            left = await ctx.broker.groups.write(request.group_id, leave)
        except BrokerError as failed:
            if not response.members:  # none has left
                return LeaveGroupResponse(error_code=failed.code)
            left = all_left(part.members, [failed.code] * len(part.members), version)
        response.error_code = left.error_code
        response.members += left.members
    return response
