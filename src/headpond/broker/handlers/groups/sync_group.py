"""SyncGroup: v0-v5.

Behaviour   Followers wait for the leader, who brings everybody's assignment; all are answered when it is durable.
Versions    v3 group.instance.id (KIP-345) · v5 protocol type and name, which are mandatory then
"""

from __future__ import annotations

from msgspec.structs import replace

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.coordination.groups.classic import sync_refusal
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.sync_group import SyncGroupRequest, SyncGroupResponse

ASSIGNMENTS_AT_ONCE = 1_000
"""Of more than these, the ones for members that the group does not have are sorted out first, in slices."""
PARKS = True
"""It waits for the other members, for as long as they take: it must not keep a place that large requests wait for."""


async def handle(ctx: Context, request: SyncGroupRequest) -> SyncGroupResponse:
    refusal = sync_refusal(request, ctx.version)
    is_allowed_to = is_allowed(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    if refusal is not ErrorCode.INCONSISTENT_GROUP_PROTOCOL and not is_allowed_to:
        refusal = ErrorCode.GROUP_AUTHORIZATION_FAILED
    if refusal is not None:
        return SyncGroupResponse(error_code=refusal)
    version = ctx.version
    try:
        if len(request.assignments) > ASSIGNMENTS_AT_ONCE:
            members = ctx.broker.groups.read(request.group_id, lambda machine: machine.member_ids(request.group_id))
            theirs = [each async for each in ctx.in_slices(request.assignments, A_LOOK) if each.member_id in members]
            request = replace(request, assignments=theirs)
            ctx.leave()  # it waits for the other members now
        return await ctx.broker.groups.parked(
            request.group_id, lambda machine, reply: machine.sync(request, version=version, reply=reply)
        )
    except BrokerError as failed:
        return SyncGroupResponse(error_code=failed.code)
