"""DescribeGroups: v0-6, the rows of classic groups.

Behaviour   metadata of members is shown while the group is stable: before, there is no elected protocol to take it of.
Versions    v4 group.instance.id · v6 GROUP_ID_NOT_FOUND with a message (KIP-1043): before, what does not exist is Dead
"""

from __future__ import annotations

from headpond.coordination.groups.classic.group import ClassicGroup, Phase
from headpond.coordination.groups.group import Group
from headpond.model import ErrorCode, shortened
from headpond.protocol.schema.describe_groups import DescribeGroupsResponse


def described(group: ClassicGroup) -> DescribeGroupsResponse.DescribedGroup:
    is_stable = group.phase is Phase.STABLE
    return DescribeGroupsResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[
            DescribeGroupsResponse.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def not_found(group_id: str, version: int, other: Group | None) -> DescribeGroupsResponse.DescribedGroup:
    """``other``: a group of another kind that has this id."""
    row = DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state=Phase.DEAD.value)
    if version >= 6:
        row.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        why = "not found" if other is None else "is not a classic group"
        row.error_message = shortened(f"Group {group_id} {why}.")
    return row
