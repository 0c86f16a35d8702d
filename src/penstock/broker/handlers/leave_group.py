"""LeaveGroup: v0-v5.

Behaviour   Members leave at once rather than with their session's end; the rest is told to join again.
Versions    v3 several members, also by group.instance.id alone (KIP-345) · v5 reasons (KIP-800)
"""

from __future__ import annotations

from penstock.broker.api import Api
from penstock.broker.context import Context
from penstock.broker.security.authorizer import Operation, ResourceType, is_allowed
from penstock.model import BrokerError, ErrorCode
from penstock.protocol.schema.leave_group import LeaveGroupRequest, LeaveGroupResponse

API = Api(key=13, versions=range(6), name="LeaveGroup")


async def handle(ctx: Context, request: LeaveGroupRequest) -> LeaveGroupResponse:
    if not is_allowed(ctx, Operation.READ, ResourceType.GROUP, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    version = ctx.version
    try:
        return await ctx.broker.groups.write(request.group_id, lambda machine: machine.leave(request, version=version))
    except BrokerError as failed:
        return LeaveGroupResponse(error_code=failed.code)
