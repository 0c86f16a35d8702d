"""The consumer groups of one partition of ``__consumer_offsets``.

Every decision is made on a draft, a copy of the group that its records are applied to as they are made; when they are
in the log, ``replay`` applies the same records to the group itself. So a decision whose records can't be written has
changed nothing, and a crash leaves the group as its last batch left it. Timers follow what is replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.classic.group import ClassicGroup
from headpond.coordination.groups.consumer import conversion, fencing, heartbeat
from headpond.coordination.groups.consumer.checks import (
    check_heartbeat,
    check_instance_is_known,
    check_instance_is_of,
)
from headpond.coordination.groups.consumer.classic_door import ClassicDoor
from headpond.coordination.groups.consumer.describe import described, not_described
from headpond.coordination.groups.consumer.group import ConsumerGroup, Draft, ResolvedRegex
from headpond.coordination.groups.consumer.heartbeat import Moment
from headpond.coordination.groups.consumer.member import LEFT_FOR_NOW_EPOCH, MemberState
from headpond.coordination.groups.consumer.sessions import Timeout
from headpond.coordination.groups.consumer.shared import Shared
from headpond.coordination.groups.consumer.subscription import (
    REGEX_REFRESH_MS_MIN,
    FoundTopics,
    find_topics,
    put_found_topics,
    regexes_are_due,
)
from headpond.coordination.groups.consumer.target import preferred_assignor
from headpond.coordination.groups.consumer.topics import TopicsView
from headpond.coordination.groups.deadline import NOTHING, WriteSoon
from headpond.coordination.groups.group import Group
from headpond.coordination.groups.meters import RebalanceMeter, Stopwatch
from headpond.coordination.records import CoordinatorRecord
from headpond.coordination.runtime import Decision
from headpond.coordination.slices import InSlices, at_once, while_wanted
from headpond.model import BrokerError, ErrorCode, invariant
from headpond.ports import Clock, Random
from headpond.protocol.schema.consumer_group_describe import ConsumerGroupDescribeResponse
from headpond.protocol.schema.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from headpond.protocol.schema.consumer_group_records import ConsumerGroupCurrentMemberAssignmentKey


class ConsumerGroups:
    def __init__(
        self,
        groups: dict[str, Group],
        settings: Callable[[], GroupSettings],
        clock: Clock,
        random: Random,
        write_soon: WriteSoon,
        topics: Callable[[], TopicsView],
        meter: RebalanceMeter | None = None,
        in_slices: InSlices = at_once,
    ) -> None:
        """``groups``: all of the partition, of every kind. ``in_slices``: for what takes long."""
        self.meter = meter or RebalanceMeter()
        self._stopwatch = Stopwatch(self.meter)
        self._shared = Shared(groups, settings, clock, random, write_soon, topics)
        self.classic_door = ClassicDoor(self._shared)
        """For members that speak the classic protocol."""
        self._groups = groups
        self._in_slices = in_slices
        self._sessions = self._shared.sessions
        self._is_live = False
        self._new_topics_version = -1
        self._resolving_until_s: dict[str, float] = {}
        """Groups whose regular expressions are being resolved, and until when no second resolution starts."""

    # --- the new protocol

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, *, version: int, client_id: str, client_host: str
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        """Raises ``BrokerError``, whose code and message are the answer. ``client_host`` with Java's slash."""
        moment = self._shared.now()
        check_heartbeat(request, version, moment.settings.consumer_assignors)
        if request.member_epoch < 0:
            return self._leave(request, moment)
        group = self._groups.get(request.group_id)
        draft = self._draft(request, moment)
        regexes = draft.group.regexes
        heartbeat.check_room(draft, moment.settings, request.member_id)
        member_id = request.member_id or self._shared.new_member_id()
        if request.instance_id is None:
            before = heartbeat.dynamic_member(draft, request, member_id)
        else:
            before = heartbeat.static_member(draft, request, member_id, request.instance_id)
        member = heartbeat.updated_by(before, request, client_id=client_id, client_host=client_host)
        response = heartbeat.beat(draft, before, member, request, moment)
        self._shared.looked_at_topics(group, draft)
        self._resolve_if_due(draft.group, regexes, moment)
        session_timeout_ms = moment.settings.session_timeout_ms(request.group_id)
        self._sessions.put_off(Timeout.SESSION, request.group_id, member_id, session_timeout_ms)
        return Decision(response, draft.records)

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest, moment: Moment
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        group = self._shared.require(request.group_id)
        response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        if request.instance_id is None:
            member = group.require(request.member_id)
        else:
            member = check_instance_is_known(group.static_member(request.instance_id), request.instance_id)
            check_instance_is_of(member, request.member_id)
            if request.member_epoch == LEFT_FOR_NOW_EPOCH:
                draft = Draft(group)
                fencing.leave_for_now(draft, member)
                return Decision(response, draft.records)
        return self._shared.remove(group, [member], response, moment)

    def describe(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        try:
            group = self._shared.require(group_id)
        except BrokerError as refusal:
            return not_described(group_id, refusal.message)
        return described(group, self._shared.topics(), preferred_assignor(group, self._shared.settings()))

    # --- the classic protocol, in a consumer group with members

    def serves(self, group_id: str) -> bool:
        """Whether JoinGroup, SyncGroup, Heartbeat and LeaveGroup of that group go through ``classic_door``. (JoinGroup
        to an empty consumer group makes it a classic one.)"""
        group = self._groups.get(group_id)
        return isinstance(group, ConsumerGroup) and not group.is_empty

    # --- topics

    def topics_changed(self, names: Iterable[str]) -> None:
        """Appeared, went or grew: the groups that are subscribed to them look with their next heartbeat."""
        changed = list(names)
        self._new_topics_version = self._shared.topics().version
        for group in self._shared.all():
            if any(map(group.is_subscribed_to, changed)):
                group.metadata_is_due = True

    def _resolve_if_due(self, group: ConsumerGroup, regexes: Mapping[str, ResolvedRegex], moment: Moment) -> None:
        group_id, now_s = group.group_id, self._shared.clock.monotonic()
        if now_s < self._resolving_until_s.get(group_id, now_s):
            return
        interval_ms = moment.settings.consumer_regex_refresh_interval_ms
        if regexes_are_due(
            group, regexes, new_topics_version=self._new_topics_version, interval_ms=interval_ms, now_ms=moment.now_ms
        ):
            self._resolving_until_s[group_id] = now_s + REGEX_REFRESH_MS_MIN / 1000
            self._shared.write_soon(
                f"regular expressions of {group_id}", lambda machine: machine.consumer.look_up_regexes(group_id)
            )

    def look_up_regexes(self, group_id: str) -> Decision[None]:
        """Takes long where topics are many and an expression is bad. Writes nothing itself: ``resolve`` does then."""
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            self._resolving_until_s.pop(group_id, None)
            return NOTHING
        what, regexes = f"regular expressions of {group_id}", sorted(group.regex_counts)

        def is_wanted() -> bool:
            self._resolving_until_s[group_id] = self._shared.clock.monotonic() + REGEX_REFRESH_MS_MIN / 1000
            return self._is_live and not group.is_deleted and any(each in group.regex_counts for each in regexes)

        def done(found: FoundTopics | None) -> None:
            if found is None:
                self._resolving_until_s.pop(group_id, None)
            else:
                self._shared.write_soon(what, lambda machine: machine.consumer.resolve(group_id, found))

        self._in_slices(what, while_wanted(find_topics(regexes, self._shared.topics()), is_wanted), done)
        return NOTHING

    def resolve(self, group_id: str, found: FoundTopics) -> Decision[None]:
        self._resolving_until_s.pop(group_id, None)
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return NOTHING
        draft = Draft(group)
        put_found_topics(draft, found, self._shared.topics(), self._shared.clock.now_ms())
        self._shared.looked_at_topics(group, draft)
        return Decision(None, draft.records)

    # --- the log, and the coordinator's life

    def replay(self, key: Any, value: Any) -> None:
        """A record of a consumer group: see ``stored_types``."""
        group = self._groups.get(key.group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return  # of a group that is gone, or has become another
            # An empty classic group stands for offsets alone: no record holds it.
            invariant(group is None or group.is_empty, "two kinds of group under one id", key.group_id)
            group = self._groups[key.group_id] = ConsumerGroup(key.group_id, self._shared.topics)
        epoch = group.epoch
        group.apply(CoordinatorRecord(key, value))
        if self._is_live:
            self._time_rebalance(group, is_new_epoch=group.epoch > epoch)
        if group.is_deleted:
            del self._groups[key.group_id]
            self._resolving_until_s.pop(key.group_id, None)
        if self._is_live and hasattr(key, "member_id"):
            self._set_timers(group, key.member_id, has_stepped=isinstance(key, ConsumerGroupCurrentMemberAssignmentKey))

    def loaded(self) -> None:
        self._is_live = True
        self._new_topics_version = self._shared.topics().version
        for group in self._shared.all():
            group.metadata_is_due = True
            for member_id in group.members:
                self._set_timers(group, member_id, has_stepped=True)

    def close(self) -> None:
        self._is_live = False
        self._sessions.close()

    def _time_rebalance(self, group: ConsumerGroup, *, is_new_epoch: bool) -> None:
        group_id = group.group_id
        if is_new_epoch and group.members:
            self._stopwatch.begin(group_id, self._shared.clock.monotonic())
        elif group_id in self._stopwatch:
            if group.is_deleted or not group.members:
                self._stopwatch.forget(group_id)
            elif group.is_settled:
                self._stopwatch.complete(group_id, self._shared.clock.monotonic())

    def _set_timers(self, group: ConsumerGroup, member_id: str, *, has_stepped: bool) -> None:
        member = group.members.get(member_id)
        if member is None:
            self._sessions.forget(group.group_id, member_id)
            return
        self._sessions.start(Timeout.SESSION, group.group_id, member_id, self._shared.session_timeout_ms(group, member))
        if not has_stepped:
            return
        # Classic members have their join and sync time-outs instead.
        if member.state is MemberState.UNREVOKED_PARTITIONS and not member.is_classic:
            self._sessions.put_off(Timeout.REVOCATION, group.group_id, member_id, member.rebalance_timeout_ms)
        else:
            self._sessions.cancel(Timeout.REVOCATION, group.group_id, member_id)

    # --- inside

    def _draft(self, request: ConsumerGroupHeartbeatRequest, moment: Moment) -> Draft:
        """Of the group, or of the one that there will be when somebody joins."""
        group_id = request.group_id
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return Draft(group)
        if group is None and request.member_epoch > 0:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        draft = Draft(ConsumerGroup(group_id, self._shared.topics))
        if group is None:
            return draft
        if request.member_epoch > 0 or not isinstance(group, ClassicGroup):
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        if group.is_empty:
            draft.records.extend(group.tombstones())
        else:
            conversion.check_upgrade(group, moment.settings)
            conversion.upgrade(draft, group, moment.topics)
        return draft
