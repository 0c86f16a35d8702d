"""The answers to JoinGroup and SyncGroup, and what the versions make of them."""

from __future__ import annotations

from headpond.coordination.groups.classic.group import ClassicGroup
from headpond.coordination.groups.classic.member import JoinReply, Member
from headpond.model import ErrorCode
from headpond.protocol.schema.join_group import JoinGroupResponse
from headpond.protocol.schema.sync_group import SyncGroupResponse


def for_version(reply: JoinReply, version: int) -> JoinReply:
    """JoinGroup's protocol name, when there is none, is empty before v7 and null since."""

    def answer(response: JoinGroupResponse) -> None:
        response.protocol_name = (response.protocol_name or None) if version >= 7 else (response.protocol_name or "")
        reply(response)

    return answer


def joined(
    group: ClassicGroup, member_id: str, *, with_members: bool, skip_assignment: bool = False
) -> JoinGroupResponse:
    """``with_members``: for the leader, which assigns."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type or None,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=_members(group) if with_members else [],
    )


def _members(group: ClassicGroup) -> list[JoinGroupResponse.JoinGroupResponseMember]:
    return [
        JoinGroupResponse.JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    ]


def join_refused(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id)


def assigned(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type or None, protocol_name=group.protocol_name, assignment=member.assignment
    )


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)
