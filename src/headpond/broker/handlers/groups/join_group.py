"""JoinGroup: v0-v9.

Behaviour   Answered when the group's join phase is complete, or at once where there is nothing to wait for; what a
            group does with it is told in ``coordination/groups/classic/join.py``.
Differs     A member with more than 1,000 protocols is refused with INCONSISTENT_GROUP_PROTOCOL.
Versions    v1 rebalance time-out · v4 member id required (KIP-394) · v5 group.instance.id (KIP-345) ·
            v7 protocol type, nullable protocol name · v8 reason (KIP-800) · v9 skip_assignment (KIP-814)
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.coordination.groups.classic import join_refusal
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.join_group import JoinGroupRequest, JoinGroupResponse

NULL_PROTOCOL_SINCE = 7

PROTOCOLS_MAX = 1_000
"""Of one member: clients have one for each of their assignors. Each is kept, and compared with those of all others."""

PARKS = True
"""It waits for the other members, for as long as they take: it must not keep a place that large requests wait for."""


async def handle(ctx: Context, request: JoinGroupRequest) -> JoinGroupResponse:
    if not is_allowed(ctx, Operation.READ, ResourceType.GROUP, request.group_id):
        return _refused(ctx, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    groups, version, client_id, client_host = ctx.broker.groups, ctx.version, ctx.client_id or "", f"/{ctx.peer_host}"
    refusal = join_refusal(request, groups.settings())
    if refusal is None and len(request.protocols) > PROTOCOLS_MAX:
        refusal = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if refusal is not None:
        return _refused(ctx, refusal, request.member_id)
    try:
        return await groups.parked(
            request.group_id,
            lambda machine, reply: machine.join(
                request, version=version, client_id=client_id, client_host=client_host, reply=reply
            ),
        )
    except BrokerError as failed:
        return _refused(ctx, failed.code)


def _refused(ctx: Context, error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    name = None if ctx.version >= NULL_PROTOCOL_SINCE else ""
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=name)
