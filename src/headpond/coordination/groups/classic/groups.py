"""The classic groups of one partition of ``__consumer_offsets``.

What the log holds is restored by ``replay``. While the coordinator is live a group's members, parked requests and
timers are changed by the decision itself, as in Kafka; the record that comes out of it then only brings the
assignments. Two rules follow: nobody learns of an assignment or of a static member's new id before it is committed;
and what is lost with a crash (a half-done rebalance) is done again by the members, who find an older generation.

Each JoinGroup and SyncGroup is answered through its ``reply`` exactly once, also when its member leaves, is fenced or
times out, when a record can't be written, or when the coordinator moves away (NOT_COORDINATOR).
"""

from __future__ import annotations

from collections.abc import Callable

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.classic import leave as leaving
from headpond.coordination.groups.classic.answers import for_version, join_refused, sync_refused
from headpond.coordination.groups.classic.describe import described, not_found
from headpond.coordination.groups.classic.group import ClassicGroup, Phase
from headpond.coordination.groups.classic.join import Join, Joins
from headpond.coordination.groups.classic.member import PREFIX_BYTES_MAX, JoinReply, SyncReply
from headpond.coordination.groups.classic.rebalance import Rebalances
from headpond.coordination.groups.classic.refusals import join_refusal, sync_refusal
from headpond.coordination.groups.classic.stored import new_group_record, restore, take_assignments
from headpond.coordination.groups.classic.sync import sync
from headpond.coordination.groups.deadline import NOTHING, WriteSoon
from headpond.coordination.groups.group import Group
from headpond.coordination.groups.meters import RebalanceMeter
from headpond.coordination.records import CoordinatorRecord
from headpond.coordination.runtime import Decision
from headpond.model import ErrorCode
from headpond.ports import Clock, Random
from headpond.protocol.schema.classic_group_records import GroupMetadataKey, GroupMetadataValue
from headpond.protocol.schema.describe_groups import DescribeGroupsResponse
from headpond.protocol.schema.heartbeat import HeartbeatRequest, HeartbeatResponse
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headpond.protocol.schema.sync_group import SyncGroupRequest


class ClassicGroups:
    def __init__(
        self,
        groups: dict[str, Group],
        settings: Callable[[], GroupSettings],
        clock: Clock,
        random: Random,
        write_soon: WriteSoon,
        meter: RebalanceMeter | None = None,
    ) -> None:
        """``groups``: all of the partition, of every kind."""
        self.rebalances = Rebalances(groups, settings, clock, write_soon, meter or RebalanceMeter())
        self._groups = groups
        self._settings = settings
        self._joins = Joins(self.rebalances, random)
        self._is_live = False

    # --- requests of members

    def join(
        self, request: JoinGroupRequest, *, version: int, client_id: str, client_host: str, reply: JoinReply
    ) -> Decision[None]:
        """``client_host`` as DescribeGroups shows it, with Java's slash: "/192.0.2.1"."""
        reply = for_version(reply, version)
        settings = self._settings()
        refusal = join_refusal(request, settings)
        if refusal is None and not request.member_id:
            refusal = _no_member_id(request.group_instance_id or client_id)
        found = self._groups.get(request.group_id)
        if refusal is None and not isinstance(found, ClassicGroup):
            refusal = _no_classic_group(found, request.member_id)
        if refusal is not None:
            reply(join_refused(refusal, request.member_id))
            return NOTHING
        protocols = tuple([(protocol.name, protocol.metadata) for protocol in request.protocols])
        join = Join(request, protocols, version, client_id, client_host, reply)
        if isinstance(found, ClassicGroup):
            return self._joins.join(found, join, members_max=settings.members_max)
        return self._join_new(request.group_id, found, join, settings.members_max)

    def sync(self, request: SyncGroupRequest, *, version: int, reply: SyncReply) -> Decision[None]:
        group = self._groups.get(request.group_id)
        refusal = sync_refusal(request, version)
        if refusal is None and not isinstance(group, ClassicGroup):
            refusal = ErrorCode.UNKNOWN_MEMBER_ID
        if refusal is not None or not isinstance(group, ClassicGroup):
            reply(sync_refused(refusal or ErrorCode.UNKNOWN_MEMBER_ID))
            return NOTHING
        return sync(self.rebalances, group, request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Never writes: call it from a read."""
        group = self._groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            unknown = ErrorCode.UNKNOWN_MEMBER_ID if request.group_id else ErrorCode.INVALID_GROUP_ID
            return HeartbeatResponse(error_code=unknown)
        error = group.member_error(request.member_id, request.group_instance_id)
        if error is not None:
            return HeartbeatResponse(error_code=error)
        if request.generation_id != group.generation:
            return HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)
        self.rebalances.restart_session(group, group.members[request.member_id])
        if group.phase is Phase.PREPARING:
            return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return HeartbeatResponse()

    def leave(self, request: LeaveGroupRequest, *, version: int) -> Decision[LeaveGroupResponse]:
        if not request.group_id:
            return Decision(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        group = self._groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return leaving.leave(self.rebalances, group, request, version)
        identities = leaving.leaving_members(request, version)
        return Decision(leaving.left(identities, [ErrorCode.UNKNOWN_MEMBER_ID] * len(identities), version))

    # --- what others ask

    def describe(self, group_id: str, *, version: int) -> DescribeGroupsResponse.DescribedGroup:
        group = self._groups.get(group_id)
        return described(group) if isinstance(group, ClassicGroup) else not_found(group_id, version, group)

    def simple(self, group_id: str) -> ClassicGroup:
        """The group that offsets of ``group_id`` belong to when nobody ever joined it; made where there is none."""
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return group
        made = self._groups[group_id] = self.rebalances.new_group(group_id)
        return made

    # --- the log, and the coordinator's life

    def replay(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        group = self._groups.get(key.group)
        if value is None:
            if isinstance(group, ClassicGroup):
                # Somebody can be in it only when it becomes a consumer group: they go on there.
                self.rebalances.end(group, ErrorCode.REBALANCE_IN_PROGRESS)
                del self._groups[key.group]
        elif self._is_live and isinstance(group, ClassicGroup):
            take_assignments(group, value)
        else:
            stored = self._groups[key.group] = self.rebalances.new_group(key.group)
            restore(stored, value)
            if self._is_live:
                self._start(stored)

    def loaded(self) -> None:
        self._is_live = True
        for group in self._all():
            self._start(group)
            if len(group.members) > self._settings().members_max and group.phase is Phase.STABLE:
                # group.max.size was lowered. Those who come last are turned away, after they could commit.
                self.rebalances.prepare(group, "loaded with more members than group.max.size")

    def close(self) -> None:
        for group in self._all():
            self.rebalances.end(group, ErrorCode.NOT_COORDINATOR)

    # --- inside

    def _join_new(self, group_id: str, replaced: Group | None, join: Join, members_max: int) -> Decision[None]:
        """The group is written down at once, so that it is there (and can expire) even if nobody comes back."""
        group = self.rebalances.new_group(group_id)
        self._groups[group_id] = group
        self._joins.join(group, join, members_max=members_max)  # into an empty group: nothing to write yet

        def failed(code: ErrorCode) -> None:
            if group.is_stored or self._groups.get(group_id) is not group:
                return
            self.rebalances.end(group, code)
            if replaced is None:
                del self._groups[group_id]
            else:
                self._groups[group_id] = replaced

        gone: list[CoordinatorRecord] = [] if replaced is None else replaced.tombstones()
        return Decision(None, [*gone, new_group_record(group)], on_failed=failed)

    def _start(self, group: ClassicGroup) -> None:
        """It has come from the log: sessions run, and who has to join again learns it."""
        for member in group.members.values():
            self.rebalances.restart_session(group, member)
        if group.has_no_leader_yet:
            self.rebalances.prepare(group, "it was a consumer group")  # nobody has joined: nothing to write

    def _all(self) -> list[ClassicGroup]:
        return [group for group in self._groups.values() if isinstance(group, ClassicGroup)]


def _no_member_id(prefix: str) -> ErrorCode | None:
    """No record and no response has room for such an id; the code is Kafka's."""
    return ErrorCode.UNKNOWN_SERVER_ERROR if len(prefix.encode()) > PREFIX_BYTES_MAX else None


def _no_classic_group(found: Group | None, member_id: str) -> ErrorCode | None:
    """None: there may be one, made of nothing or of an empty consumer group."""
    if found is not None and not (found.kind == "consumer" and found.is_empty):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.UNKNOWN_MEMBER_ID if member_id else None
