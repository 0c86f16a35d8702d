"""JoinGroup: v0-9.

Behaviour   parked until the join phase is complete; answered at once where the group has nothing to decide anew.
            A new dynamic member is sent back with an id first (KIP-394): a retry does not become a second member.
            A static member (KIP-345) that comes back takes its place over; while the group is stable, its assignor
            stays elected and the member reads the same topics nothing is rebalanced: the new id is written down, and
            it is told its generation. (Kafka does not look at the topics: those that are new to the group have no
            reader until the next rebalance.)
Versions    v1 rebalance time-out · v4 member id required · v5 group.instance.id · v7 protocol type, nullable name ·
            v8 reason (KIP-800) · v9 a returning static leader is told that it leads, but need not assign (KIP-814)
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from headpond.coordination.groups.classic.answers import join_refused, joined
from headpond.coordination.groups.classic.group import ClassicGroup, Phase
from headpond.coordination.groups.classic.member import JoinReply, Member, Protocols, new_member_id
from headpond.coordination.groups.classic.protocols import subscribed_topics
from headpond.coordination.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, Rebalances
from headpond.coordination.groups.classic.stored import group_record
from headpond.coordination.groups.deadline import NOTHING
from headpond.coordination.runtime import Decision
from headpond.model import ErrorCode
from headpond.ports import Random
from headpond.protocol.schema.join_group import JoinGroupRequest

_log = logging.getLogger(__name__)


class Join(NamedTuple):
    """One JoinGroup, as the branches below need it."""

    request: JoinGroupRequest
    protocols: Protocols
    version: int
    client_id: str
    client_host: str
    reply: JoinReply

    @property
    def rebalance_timeout_ms(self) -> int:
        return self.request.rebalance_timeout_ms if self.version >= 1 else self.request.session_timeout_ms

    def because(self, what: str) -> str:
        return f"{what}; the client says {self.request.reason!r}" if self.request.reason else what


class Joins:
    def __init__(self, rebalances: Rebalances, random: Random) -> None:
        self._rebalances = rebalances
        self._random = random

    def join(self, group: ClassicGroup, join: Join, *, members_max: int) -> Decision[None]:
        request = join.request
        member_id = request.member_id
        if not _has_room(group, member_id, members_max):
            group.remove(member_id)
            join.reply(join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED))
            return self._rebalances.complete_join_if_all_joined(group)
        if not group.supports(request.protocol_type, (name for name, _ in join.protocols)):
            return _refuse(join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if member_id:
            return self._known(group, join)
        if request.group_instance_id is None:
            return self._new_dynamic(group, join)
        current_id = group.static_ids.get(request.group_instance_id)
        new_id = new_member_id(self._random, request.group_instance_id)
        if current_id is None:
            return self._add(group, join, new_id)
        return self._static_is_back(group, join, current_id, new_id)

    # --- somebody new

    def _new_dynamic(self, group: ClassicGroup, join: Join) -> Decision[None]:
        member_id = new_member_id(self._random, join.client_id)
        if join.version < 4:
            return self._add(group, join, member_id)
        group.pending[member_id] = session = self._rebalances.session_of(group, member_id)
        session.put_off(join.request.session_timeout_ms)
        join.reply(join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        return NOTHING

    def _add(self, group: ClassicGroup, join: Join, member_id: str) -> Decision[None]:
        member = Member(
            member_id,
            group_instance_id=join.request.group_instance_id,
            client_id=join.client_id,
            client_host=join.client_host,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=join.request.session_timeout_ms,
            protocols=join.protocols,
        )
        member.is_new = True
        if group.phase is Phase.PREPARING and group.previous_phase is Phase.EMPTY:
            group.has_new_member = True
        group.add(member, join.request.protocol_type)
        group.park_join(member, join.reply)
        self._rebalances.restart_session(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        return self._rebalances.prepare_or_complete(group, join.because(f"{member_id} joins"))

    # --- somebody with an id

    def _known(self, group: ClassicGroup, join: Join) -> Decision[None]:
        request = join.request
        member_id = request.member_id
        if member_id in group.pending:
            if request.group_instance_id is not None:  # was given to a dynamic member
                join.reply(join_refused(ErrorCode.UNKNOWN_SERVER_ERROR))
                return NOTHING
            return self._add(group, join, member_id)
        error = group.member_error(member_id, request.group_instance_id)
        if error is not None:
            return _refuse(join, error)
        member = group.members[member_id]
        changed = member.protocols != join.protocols
        if group.phase is Phase.PREPARING:
            return self._again(group, join, member, f"{member_id} joins again")
        if group.phase is Phase.COMPLETING and not changed:
            # The answer to its last JoinGroup was lost.
            join.reply(joined(group, member_id, with_members=group.is_leader(member_id)))
            return NOTHING
        if group.phase is Phase.STABLE and group.is_leader(member_id):
            # What leaders see and their metadata does not show: a topic with more partitions, for one.
            return self._again(group, join, member, f"the leader {member_id} joins again")
        if changed:
            return self._again(group, join, member, f"{member_id} has other metadata")
        join.reply(joined(group, member_id, with_members=False))
        return NOTHING

    def _again(self, group: ClassicGroup, join: Join, member: Member, what: str) -> Decision[None]:
        _update(group, join, member)
        group.park_join(member, join.reply)
        return self._rebalances.prepare_or_complete(group, join.because(what))

    # --- a static member is back

    def _static_is_back(self, group: ClassicGroup, join: Join, old_id: str, new_id: str) -> Decision[None]:
        leader_id = group.leader_id
        before = group.members[old_id]
        member = group.replace_static(old_id, new_id)
        self._rebalances.restart_session(group, member)
        _update(group, join, member)
        group.park_join(member, join.reply)
        because = join.because(f"{join.request.group_instance_id} is back as {new_id}")
        if (
            group.phase is Phase.STABLE
            and group.elected_protocol() == group.protocol_name
            and _reads_same(group, before, member)
        ):
            return self._write_new_id(group, join, before, member, leader_id)
        # In the sync phase the leader may have the old id already: its assignment would miss the new one.
        return self._rebalances.prepare_or_complete(group, because)

    def _write_new_id(
        self, group: ClassicGroup, join: Join, before: Member, member: Member, leader_id: str | None
    ) -> Decision[None]:
        """Nothing else changes. ``leader_id``: as it was; before v9 a leader that is back must not learn that it leads,
        or it would assign anew."""

        def written() -> None:
            if group.phase is not Phase.STABLE:
                return  # a rebalance has begun meanwhile, and this member takes part in it
            leads = group.is_leader(member.member_id)
            if join.version >= 9:
                response = joined(group, member.member_id, with_members=leads, skip_assignment=leads)
            else:
                response = joined(group, member.member_id, with_members=False)
                response.leader = leader_id or ""
            group.answer_join(member, response)

        def failed(code: ErrorCode) -> None:
            if group.phase is Phase.DEAD or group.members.get(member.member_id) is not member:
                return
            response = joined(group, "", with_members=False)
            response.error_code, response.leader = code, leader_id or ""
            group.answer_join(member, response)
            group.update(
                member,
                before.protocols,
                rebalance_timeout_ms=before.rebalance_timeout_ms,
                session_timeout_ms=before.session_timeout_ms,
            )
            self._rebalances.restart_session(group, group.replace_static(member.member_id, before.member_id))

        return Decision(None, [group_record(group)], on_committed=written, on_failed=failed)


def _has_room(group: ClassicGroup, member_id: str, members_max: int) -> bool:
    member = group.members.get(member_id)
    if group.phase is Phase.PREPARING:
        # Those who have joined count: the last ones of a group that has become too large are turned away.
        return (member is not None and member.join_reply is not None) or group.parked_joins < members_max
    if group.phase in (Phase.COMPLETING, Phase.STABLE):
        return member is not None or len(group.members) < members_max
    return True


def _reads_same(group: ClassicGroup, before: Member, member: Member) -> bool:
    """Consumers say more than topics, which is other after each restart: what they own. Others' metadata is theirs."""
    if not group.is_of_consumers or group.protocol_name is None:
        return True
    return subscribed_topics([before], group.protocol_name) == subscribed_topics([member], group.protocol_name)


def _update(group: ClassicGroup, join: Join, member: Member) -> None:
    group.update(
        member,
        join.protocols,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        session_timeout_ms=join.request.session_timeout_ms,
    )


def _refuse(join: Join, code: ErrorCode) -> Decision[None]:
    join.reply(join_refused(code, join.request.member_id))
    return NOTHING
