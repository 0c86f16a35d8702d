"""What the log keeps of a classic group: one record that holds all of it, written when a rebalance is complete, when
the group becomes empty, when a static member comes back under a new id, and when the group is first heard of."""

from __future__ import annotations

from collections.abc import Mapping

from headpond.coordination.groups.classic.group import ClassicGroup, Phase
from headpond.coordination.groups.classic.member import Member
from headpond.coordination.records import CoordinatorRecord
from headpond.protocol.schema.classic_group_records import GroupMetadataKey, GroupMetadataValue


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> CoordinatorRecord:
    """``assignments``: those that hold once this is written; None: those that hold now."""
    if assignments is None:
        assignments = {member_id: member.assignment for member_id, member in group.members.items()}
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=-1 if group.since_ms is None else group.since_ms,
        members=[
            GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value)


def new_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """That the group exists; nobody is in it yet as far as the log goes."""
    since_ms = -1 if group.since_ms is None else group.since_ms
    value = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=since_ms)
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value)


def restore(group: ClassicGroup, value: GroupMetadataValue) -> None:
    """Make a fresh group what ``value`` says. Its members are as they were after that rebalance; of their protocols
    only the elected one is known, and their sessions are not running yet."""
    group.protocol_type = value.protocol_type
    group.protocol_name = value.protocol
    group.generation = value.generation
    group.leader_id = value.leader
    group.since_ms = None if value.current_state_timestamp == -1 else value.current_state_timestamp
    group.phase = Phase.STABLE if value.members else Phase.EMPTY
    group.is_stored = True
    group.has_no_leader_yet = bool(value.members) and value.leader is None
    for stored in value.members:
        has_none = stored.rebalance_timeout == -1  # version 0
        group.add(
            Member(
                stored.member_id,
                group_instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                rebalance_timeout_ms=stored.session_timeout if has_none else stored.rebalance_timeout,
                session_timeout_ms=stored.session_timeout,
                protocols=((value.protocol or "", stored.subscription),),
                assignment=stored.assignment,
            ),
            value.protocol_type,
        )
    if group.leader_id not in group.members:
        group.leader_id = next(iter(group.members), None)
    group.look_up_topics()


def take_assignments(group: ClassicGroup, value: GroupMetadataValue) -> None:
    """The record that this group just decided on is in the log: the rest of it is true here already."""
    group.is_stored = True
    for stored in value.members:
        member = group.members.get(stored.member_id)
        if member is not None:
            member.assignment = stored.assignment
