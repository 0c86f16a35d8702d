"""Heartbeat: v0-v4.

Behaviour   Keeps a member's session alive and tells it when to join again: REBALANCE_IN_PROGRESS. While the group is
            being loaded everything is fine: sessions begin anew when it is.
Versions    v3 group.instance.id (KIP-345) · v4 flexible
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.broker.api import Api
from penstock.broker.context import Context
from penstock.broker.security.authorizer import Operation, ResourceType, is_allowed
from penstock.model import BrokerError, ErrorCode
from penstock.protocol.schema.heartbeat import HeartbeatRequest, HeartbeatResponse

API = Api(key=12, versions=range(5), name="Heartbeat")


async def handle(ctx: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    return _answer(ctx, request)


def handle_now(ctx: Context, request: HeartbeatRequest, reply: Callable[[HeartbeatResponse], None]) -> bool:
    reply(_answer(ctx, request))
    return True


def _answer(ctx: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    if not is_allowed(ctx, Operation.READ, ResourceType.GROUP, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        return ctx.broker.groups.read(request.group_id, lambda machine: machine.heartbeat(request))
    except BrokerError as failed:
        is_loading = failed.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else failed.code)
