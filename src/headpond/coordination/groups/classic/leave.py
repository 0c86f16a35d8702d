"""LeaveGroup: v0-5.

Behaviour   one rebalance for all who leave with one request. A static member may be put out by its instance id alone,
            which is what administrators do: consumers with one don't leave when they stop.
Versions    v3 several members, by member id or instance id · v5 reasons (KIP-800)
"""

from __future__ import annotations

import logging

from headpond.coordination.groups.classic.group import ClassicGroup, Phase
from headpond.coordination.groups.classic.rebalance import Rebalances
from headpond.coordination.groups.deadline import NOTHING
from headpond.coordination.runtime import Decision
from headpond.model import ErrorCode
from headpond.protocol.schema.leave_group import LeaveGroupRequest, LeaveGroupResponse

_log = logging.getLogger(__name__)


def leaving_members(request: LeaveGroupRequest, version: int) -> list[LeaveGroupRequest.MemberIdentity]:
    return request.members if version >= 3 else [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]


def left(
    identities: list[LeaveGroupRequest.MemberIdentity], errors: list[ErrorCode], version: int
) -> LeaveGroupResponse:
    if version < 3:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        members=[
            LeaveGroupResponse.MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
            )
            for identity, error in zip(identities, errors, strict=True)
        ]
    )


def leave(
    rebalances: Rebalances, group: ClassicGroup, request: LeaveGroupRequest, version: int
) -> Decision[LeaveGroupResponse]:
    identities = leaving_members(request, version)
    errors = [_remove(group, identity) for identity in identities]
    gone = [identity.member_id for identity, error in zip(identities, errors, strict=True) if not error]
    outcome = NOTHING
    if gone and group.phase is not Phase.EMPTY:
        outcome = rebalances.prepare_or_complete(group, f"{', '.join(gone)} left")
    return Decision(left(identities, errors, version), outcome.records)


def _remove(group: ClassicGroup, identity: LeaveGroupRequest.MemberIdentity) -> ErrorCode:
    member_id = identity.member_id
    if not member_id:
        current_id = group.static_ids.get(identity.group_instance_id or "")
        if identity.group_instance_id is None or current_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = current_id
    elif member_id not in group.pending:
        error = group.member_error(member_id, identity.group_instance_id)
        if error is not None:
            return error
    _log.info("group %s: %s leaves (%r)", group.group_id, member_id, identity.reason or "no reason given")
    group.remove(member_id)
    return ErrorCode.NONE
