"""How a classic group moves from one generation to the next.

    prepare         everybody must join again; a new group waits ``group.initial.rebalance.delay.ms`` for more to come
    complete_join   all have joined, or time is up: who did not is out, the next generation begins, joins are answered
    stabilize       the leader's assignment is in the log: syncs are answered
    expire_*        time-outs: a session, a join phase, a sync phase

Methods change the group's soft state at once and return what has to be written: a record when nobody is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.classic.answers import assigned, joined, sync_refused
from headpond.coordination.groups.classic.group import ClassicGroup, Phase
from headpond.coordination.groups.classic.member import Member
from headpond.coordination.groups.classic.stored import group_record
from headpond.coordination.groups.deadline import NOTHING, Alarm, Deadline, WriteSoon
from headpond.coordination.groups.group import Group
from headpond.coordination.groups.meters import RebalanceMeter, Stopwatch
from headpond.coordination.runtime import Decision
from headpond.model import ErrorCode
from headpond.ports import Clock

_log = logging.getLogger(__name__)

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""A member that waits for the answer to its first JoinGroup can't heartbeat. If it is gone it has asked again under
another name; this long it may hold up the others."""

NOBODY_JOINED_RETRY_MS_MIN = 1_000
"""Only static members are left and none of them joined: look again after the rebalance time-out, which they choose."""


class Rebalances:
    def __init__(
        self,
        groups: dict[str, Group],
        settings: Callable[[], GroupSettings],
        clock: Clock,
        write_soon: WriteSoon,
        meter: RebalanceMeter,
    ) -> None:
        self.meter = meter
        self._groups = groups
        self._settings = settings
        self._clock = clock
        self._write_soon = write_soon
        self._stopwatch = Stopwatch(meter)

    def new_group(self, group_id: str) -> ClassicGroup:
        clock, write_soon = self._clock, self._write_soon
        return ClassicGroup(
            group_id,
            since_ms=clock.now_ms(),
            join_alarm=Alarm(clock, write_soon),
            sync_alarm=Alarm(clock, write_soon),
        )

    def end(self, group: ClassicGroup, code: ErrorCode) -> None:
        self._stopwatch.forget(group.group_id)
        group.end(code, self._clock.now_ms())

    # --- the join phase

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> Decision[None]:
        return self.prepare(group, reason) if group.can_rebalance else self.complete_join_if_all_joined(group)

    def prepare(self, group: ClassicGroup, reason: str) -> Decision[None]:
        if group.phase is Phase.COMPLETING:
            self.refuse_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        group.sync_alarm.cancel()
        is_initial = group.phase is Phase.EMPTY
        self._stopwatch.begin(group.group_id, self._clock.monotonic())
        _log.info("group %s: rebalance in generation %d (%s)", group.group_id, group.generation, reason)
        if is_initial:
            delay_ms = self._settings().initial_rebalance_delay_ms
            self._wait_for_more(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        group.move_to(Phase.PREPARING, self._clock.now_ms())
        if is_initial:
            return NOTHING
        if group.has_all_joined:
            return self.complete_join(group)
        self._complete_join_after(group, group.rebalance_timeout_ms)
        return NOTHING

    def complete_join_if_all_joined(self, group: ClassicGroup) -> Decision[None]:
        if group.phase is Phase.PREPARING and group.previous_phase is not Phase.EMPTY and group.has_all_joined:
            return self.complete_join(group)
        return NOTHING

    def complete_join(self, group: ClassicGroup) -> Decision[None]:
        group.join_alarm.cancel()
        late = [member for member in group.members.values() if member.join_reply is None and not member.is_static]
        for member in late:
            _log.info("group %s: %s did not join again and is out", group.group_id, member.member_id)
            group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:
            self._complete_join_after(group, max(group.rebalance_timeout_ms, NOBODY_JOINED_RETRY_MS_MIN))
            return NOTHING
        group.begin_generation(self._clock.now_ms())
        if group.phase is Phase.EMPTY:
            self._stopwatch.forget(group.group_id)
            _log.info("group %s: empty in generation %d", group.group_id, group.generation)
            return Decision(None, [group_record(group)])
        _log.info("group %s: generation %d has %d members", group.group_id, group.generation, len(group.members))
        for member in group.members.values():
            member.is_new = False
            group.pending_sync[member.member_id] = None
            self.restart_session(group, member)
            with_members = member.join_reply is not None and group.is_leader(member.member_id)
            group.answer_join(member, joined(group, member.member_id, with_members=with_members))
        generation = group.generation
        group.sync_alarm.set(
            "end of a sync phase", group.rebalance_timeout_ms, lambda: self.expire_sync(group, generation)
        )
        return NOTHING

    def _complete_join_after(self, group: ClassicGroup, delay_ms: int) -> None:
        group.join_alarm.set(
            "end of a join phase",
            delay_ms,
            lambda: self.complete_join(group) if group.phase is Phase.PREPARING else NOTHING,
        )

    def _wait_for_more(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        group.join_alarm.set(
            "end of an initial delay", delay_ms, lambda: self._complete_initial(group, delay_ms, remaining_ms)
        )

    def _complete_initial(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> Decision[None]:
        if group.phase is not Phase.PREPARING:
            return NOTHING
        if group.has_new_member and remaining_ms:
            group.has_new_member = False
            next_delay_ms = min(self._settings().initial_rebalance_delay_ms, remaining_ms)
            self._wait_for_more(group, next_delay_ms, max(remaining_ms - delay_ms, 0))
            return NOTHING
        return self.complete_join(group)

    # --- the sync phase

    def stabilize(self, group: ClassicGroup) -> None:
        group.move_to(Phase.STABLE, self._clock.now_ms())
        self._stopwatch.complete(group.group_id, self._clock.monotonic())
        for member in group.members.values():
            # Whose session ran out while it waited was spared: from here on it counts again.
            if group.answer_sync(member, assigned(group, member)):
                self.restart_session(group, member)

    def refuse_syncs(self, group: ClassicGroup, code: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
            if group.answer_sync(member, sync_refused(code)):
                self.restart_session(group, member)

    def expire_sync(self, group: ClassicGroup, generation: int) -> Decision[None]:
        if generation != group.generation or group.phase not in (Phase.COMPLETING, Phase.STABLE):
            return NOTHING
        if not group.pending_sync:
            return NOTHING
        silent = list(group.pending_sync)
        for member_id in silent:
            group.remove(member_id)
        return self.prepare(group, f"no SyncGroup from {', '.join(silent)}")

    # --- sessions

    def restart_session(self, group: ClassicGroup, member: Member, timeout_ms: int | None = None) -> None:
        if member.session is None:
            member.session = self.session_of(group, member.member_id)
        member.session.put_off(member.session_timeout_ms if timeout_ms is None else timeout_ms)

    def session_of(self, group: ClassicGroup, member_id: str) -> Deadline:
        def expired() -> None:
            self._write_soon("end of a session", lambda _: self.expire_session(group, member_id))

        return Deadline(self._clock, expired)

    def expire_session(self, group: ClassicGroup, member_id: str) -> Decision[None]:
        if self._groups.get(group.group_id) is not group or group.phase is Phase.DEAD:
            return NOTHING
        pending = group.pending.get(member_id)
        if pending is not None:
            return self.drop_pending(group, member_id) if pending.is_due else NOTHING
        member = group.members.get(member_id)
        if member is None or member.waits or member.session is None or not member.session.is_due:
            return NOTHING
        return self.remove(group, member_id, f"the session of {member_id} timed out")

    # --- members go

    def remove(self, group: ClassicGroup, member_id: str, reason: str) -> Decision[None]:
        group.remove(member_id)
        if group.phase in (Phase.STABLE, Phase.COMPLETING):
            return self.prepare(group, reason)
        return self._complete_join_without(group)

    def drop_pending(self, group: ClassicGroup, member_id: str) -> Decision[None]:
        _log.info("group %s: %s never came back with its id", group.group_id, member_id)
        group.drop_pending(member_id)
        return self._complete_join_without(group)

    def _complete_join_without(self, group: ClassicGroup) -> Decision[None]:
        if group.phase is Phase.PREPARING and group.has_all_joined:
            return self.complete_join(group)
        return NOTHING
