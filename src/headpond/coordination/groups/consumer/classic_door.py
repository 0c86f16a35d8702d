"""JoinGroup v0-9, SyncGroup v0-5, Heartbeat v0-4 and LeaveGroup v0-5 to a consumer group that has members.

Nothing is parked: a member gets what it can have now, and is sent back to JoinGroup by its heartbeat when there is
more. The steps are in ``classic_members.py``.
"""

from __future__ import annotations

from headpond.coordination.groups.classic.answers import for_version, join_refused, sync_refused
from headpond.coordination.groups.classic.leave import leaving_members, left
from headpond.coordination.groups.classic.member import JoinReply, SyncReply
from headpond.coordination.groups.classic.refusals import join_refusal, sync_refusal
from headpond.coordination.groups.consumer import classic_members, conversion, heartbeat
from headpond.coordination.groups.consumer.checks import check_instance_is_known, check_instance_is_of
from headpond.coordination.groups.consumer.group import ConsumerGroup, Draft
from headpond.coordination.groups.consumer.member import Member
from headpond.coordination.groups.consumer.sessions import Timeout
from headpond.coordination.groups.consumer.shared import Shared
from headpond.coordination.groups.deadline import NOTHING
from headpond.coordination.runtime import Decision
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.heartbeat import HeartbeatRequest, HeartbeatResponse
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headpond.protocol.schema.sync_group import SyncGroupRequest


class ClassicDoor:
    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def join(
        self, request: JoinGroupRequest, *, version: int, client_id: str, client_host: str, reply: JoinReply
    ) -> Decision[None]:
        reply = for_version(reply, version)
        refusal = join_refusal(request, self._shared.settings())
        if refusal is not None:
            reply(join_refused(refusal, request.member_id))
            return NOTHING
        try:
            return self._join(request, version, client_id, client_host, reply)
        except BrokerError as refused:
            reply(join_refused(refused.code))
            return NOTHING

    def _join(
        self, request: JoinGroupRequest, version: int, client_id: str, client_host: str, reply: JoinReply
    ) -> Decision[None]:
        moment, group = self._shared.now(), self._shared.require(request.group_id)
        conversion.check_classic_member_may_join(group, moment.settings)
        draft = Draft(group)
        member_id = request.member_id or self._shared.new_member_id()
        heartbeat.check_room(draft, moment.settings, member_id)
        classic_members.check_protocols(group, request, member_id)
        if version >= 4 and request.group_instance_id is None and not request.member_id:
            reply(join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return NOTHING
        timeout_ms = request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms
        subscription = classic_members.read_subscription(request)
        joining = classic_members.Joining(request, member_id, client_id, client_host, timeout_ms, subscription)
        replaced = group.static_member(request.group_instance_id)
        member, change = classic_members.put_classic_member(draft, joining)
        strays = classic_members.strays(group, joining, moment.topics)
        if strays & group.owners.keys():
            return self._put_out(group, member_id, moment, reply)
        member = classic_members.must_give_up(draft, member, strays)
        is_downgrade = _ends_new_protocol(group, replaced, moment)
        if is_downgrade:
            if not change.is_any:
                member = classic_members.step(draft, member, joining, change, moment)
            records = [*draft.records, *conversion.downgrade(draft.group, (), moment.topics, moment.now_ms)]
        else:
            classic_members.move_on(draft, change, moment)
            member = classic_members.step(draft, member, joining, change, moment)
            self._shared.looked_at_topics(group, draft)
            records = draft.records

        def written() -> None:
            if not is_downgrade and member.member_id in group.members:
                key = (group.group_id, member.member_id)
                self._shared.sessions.cancel(Timeout.JOIN, *key)
                self._shared.sessions.put_off(Timeout.SESSION, *key, request.session_timeout_ms)
                self._shared.sessions.put_off(Timeout.SYNC, *key, timeout_ms)
            reply(classic_members.joined(member))

        return Decision(None, records, on_committed=written, on_failed=lambda code: reply(join_refused(code)))

    def _put_out(
        self, group: ConsumerGroup, member_id: str, moment: heartbeat.Moment, reply: JoinReply
    ) -> Decision[None]:
        """It owns what another member has got since: the next epoch would let both commit. It gives everything up when
        it is told that it is not in the group, and comes back as a new member. (Kafka lets it go on.)"""
        gone = self._shared.remove(group, [group.require(member_id)], None, moment)
        return Decision(
            None,
            gone.records,
            on_committed=lambda: reply(join_refused(ErrorCode.UNKNOWN_MEMBER_ID)),
            on_failed=lambda code: reply(join_refused(code)),
        )

    def sync(self, request: SyncGroupRequest, *, version: int, reply: SyncReply) -> Decision[None]:
        refusal = sync_refusal(request, version)
        if refusal is not None:
            reply(sync_refused(refusal))
            return NOTHING
        try:
            group = self._shared.require(request.group_id)
            member = classic_members.require_classic(
                group, request.member_id, request.group_instance_id, request.generation_id
            )
            response = classic_members.synced(group, member, request, self._shared.topics())
        except BrokerError as refused:
            if refused.code is ErrorCode.REBALANCE_IN_PROGRESS:
                self._shared.expect_join(group, member)
            reply(sync_refused(refused.code))
            return NOTHING
        self._shared.sessions.cancel(Timeout.SYNC, group.group_id, member.member_id)
        self._shared.put_off_session(group, member)
        reply(response)
        return NOTHING

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Never writes: call it from a read."""
        try:
            group = self._shared.require(request.group_id)
            member = classic_members.require_classic(
                group, request.member_id, request.group_instance_id, request.generation_id
            )
        except BrokerError as refused:
            return HeartbeatResponse(error_code=refused.code)
        self._shared.put_off_session(group, member)
        if not classic_members.must_join_again(group, member, self._shared.now()):
            return HeartbeatResponse()
        self._shared.expect_join(group, member)
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)

    def leave(self, request: LeaveGroupRequest, *, version: int) -> Decision[LeaveGroupResponse]:
        """Anybody may be put out, those who speak the new protocol as well."""
        moment, group = self._shared.now(), self._shared.require(request.group_id)
        identities = leaving_members(request, version)
        errors, gone = [], {}
        for identity in identities:
            try:
                member = _named(group, identity)
                gone[member.member_id] = member
                errors.append(ErrorCode.NONE)
            except BrokerError as refused:
                errors.append(refused.code)
        return self._shared.remove(group, list(gone.values()), left(identities, errors, version), moment)


def _ends_new_protocol(group: ConsumerGroup, replaced: Member | None, moment: heartbeat.Moment) -> bool:
    """The last member that spoke it is replaced by a classic one."""
    if replaced is None or replaced.is_classic:
        return False
    return conversion.can_downgrade(group, [replaced.member_id], moment.settings, joining=1)


def _named(group: ConsumerGroup, identity: LeaveGroupRequest.MemberIdentity) -> Member:
    """By its id, or by its instance id alone: that is how administrators put static members out."""
    if identity.group_instance_id is None:
        return group.require(identity.member_id)
    member = check_instance_is_known(group.static_member(identity.group_instance_id), identity.group_instance_id)
    if identity.member_id:
        check_instance_is_of(member, identity.member_id)
    return member
