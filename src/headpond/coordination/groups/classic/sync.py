"""SyncGroup: v0-5.

Behaviour   members ask for their assignment; they are parked until the leader's own request, which brings everybody's,
            is in the log: what a member was told, a coordinator that takes over knows too.
Versions    v3 group.instance.id · v5 protocol type and name, which must be given and be the group's
"""

from __future__ import annotations

import logging

from headpond.coordination.groups.classic.answers import assigned, sync_refused
from headpond.coordination.groups.classic.group import ClassicGroup, Phase
from headpond.coordination.groups.classic.member import SyncReply
from headpond.coordination.groups.classic.rebalance import Rebalances
from headpond.coordination.groups.classic.stored import group_record
from headpond.coordination.groups.deadline import NOTHING
from headpond.coordination.runtime import Decision
from headpond.model import ErrorCode
from headpond.protocol.schema.sync_group import SyncGroupRequest

_log = logging.getLogger(__name__)


def sync(rebalances: Rebalances, group: ClassicGroup, request: SyncGroupRequest, reply: SyncReply) -> Decision[None]:
    error = _refusal(group, request)
    if error is not None:
        reply(sync_refused(error))
        return NOTHING
    member = group.members[request.member_id]
    group.pending_sync.pop(request.member_id, None)
    if not group.pending_sync:
        group.sync_alarm.cancel()
    if group.phase is Phase.STABLE:
        reply(assigned(group, member))
        return NOTHING
    # A second SyncGroup comes over another connection: nobody reads the answer to the first any more.
    group.answer_sync(member, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_reply = reply
    if not group.is_leader(request.member_id):
        return NOTHING
    return _write_assignment(rebalances, group, request)


def _write_assignment(rebalances: Rebalances, group: ClassicGroup, request: SyncGroupRequest) -> Decision[None]:
    generation = group.generation
    assignments = {given.member_id: given.assignment for given in request.assignments}
    without = sum(member_id not in assignments for member_id in group.members)
    if without:
        _log.warning("group %s: its leader left %d of %d members out", group.group_id, without, len(group.members))

    def is_current() -> bool:
        """Somebody may have joined while the record was on its way: then this assignment has come too late."""
        return group.phase is Phase.COMPLETING and group.generation == generation

    def written() -> None:
        if is_current():
            rebalances.stabilize(group)

    def failed(code: ErrorCode) -> None:
        if is_current():
            rebalances.refuse_syncs(group, code)
            # Somebody is in the group, and not everybody has joined: nothing to write now.
            rebalances.prepare(group, f"the assignment could not be written: {code.name}")

    return Decision(None, [group_record(group, assignments)], on_committed=written, on_failed=failed)


def _refusal(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode | None:
    error = group.member_error(request.member_id, request.group_instance_id)
    if error is not None:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.phase is Phase.PREPARING else None


def _differs(given: str | None, ours: str | None) -> bool:
    return given is not None and ours is not None and given != ours
