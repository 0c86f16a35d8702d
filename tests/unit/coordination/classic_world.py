"""Classic groups without a broker: a log in memory, a clock that the test moves, members with few words."""

from __future__ import annotations

from typing import Any

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.classic import ClassicGroup, ClassicGroups
from headpond.coordination.groups.group import Group
from headpond.coordination.records import CoordinatorRecord, RecordCodec, RecordType
from headpond.coordination.runtime import Decision
from headpond.model import ErrorCode
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.schema.classic_group_records import GroupMetadataKey, GroupMetadataValue
from headpond.protocol.schema.heartbeat import HeartbeatRequest
from headpond.protocol.schema.join_group import JoinGroupRequest, JoinGroupResponse
from headpond.protocol.schema.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headpond.protocol.schema.sync_group import SyncGroupRequest, SyncGroupResponse
from simulation.harness.chance import SeededRandom
from simulation.harness.clock import ManualClock

CODEC = RecordCodec({2: RecordType(GroupMetadataKey, GroupMetadataValue, 3)})
GROUP = "readers"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000


class Waiting:
    """The answers to one request that may be parked: exactly one must come. Each is encoded in its version."""

    def __init__(self, version: int) -> None:
        self.answers: list[Any] = []
        self._version = version

    def __call__(self, response: Any) -> None:
        data = encoder(type(response), self._version)(response)
        decoded, end = decoder(type(response), self._version)(data, 0)
        assert end == len(data)
        self.answers.append(decoded)

    @property
    def is_parked(self) -> bool:
        return not self.answers

    @property
    def answer(self) -> Any:
        assert len(self.answers) == 1, f"{len(self.answers)} answers"
        return self.answers[0]

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.answer.error_code)


class Joined(Waiting):
    answers: list[JoinGroupResponse]


class Synced(Waiting):
    answers: list[SyncGroupResponse]


class World:
    """One partition's coordinator. ``log`` outlives ``restart``; records commit at once unless ``holds_commits``."""

    def __init__(self, settings: GroupSettings | None = None, seed: int = 1) -> None:
        self.settings = settings or GroupSettings(initial_rebalance_delay_ms=DELAY_MS)
        self.clock = ManualClock()
        self.random = SeededRandom(seed)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.holds_commits = False
        self.append_error: ErrorCode | None = None
        self.uncommitted: list[Decision[Any]] = []
        self.start()

    # --- the coordinator's life

    def start(self) -> None:
        self.groups: dict[str, Group] = {}
        self.classic = ClassicGroups(
            self.groups, lambda: self.settings, self.clock, self.random, lambda _, decide: self.write(decide(None))
        )
        for key, value in self.log:
            self.replay(CODEC.decode(key, value))
        self.classic.loaded()

    def restart(self) -> None:
        self.classic.close()
        self.fail_commits(ErrorCode.NOT_COORDINATOR)
        self.start()

    def replay(self, record: CoordinatorRecord | None) -> None:
        assert record is not None and isinstance(record.key, GroupMetadataKey)
        assert record.value is None or isinstance(record.value, GroupMetadataValue)
        self.classic.replay(record.key, record.value)

    def write(self, decision: Decision[Any]) -> Any:
        if decision.records:
            if self.append_error is not None:
                if decision.on_failed is not None:
                    decision.on_failed(self.append_error)
                return decision.answer
            for record in decision.records:
                encoded = CODEC.encode(record)
                self.log.append(encoded)
                self.replay(CODEC.decode(*encoded))
            if self.holds_commits:
                self.uncommitted.append(decision)
                return decision.answer
        if decision.on_committed is not None:
            decision.on_committed()
        return decision.answer

    def commit(self) -> None:
        decisions, self.uncommitted = self.uncommitted, []
        for decision in decisions:
            if decision.on_committed is not None:
                decision.on_committed()

    def fail_commits(self, code: ErrorCode) -> None:
        decisions, self.uncommitted = self.uncommitted, []
        for decision in decisions:
            if decision.on_failed is not None:
                decision.on_failed(code)

    def advance_ms(self, milliseconds: float) -> None:
        self.clock.advance(milliseconds / 1000)

    def group(self, group_id: str = GROUP) -> ClassicGroup:
        group = self.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    @property
    def stored(self) -> GroupMetadataValue | None:
        """The last record of the log."""
        record = CODEC.decode(*self.log[-1])
        assert record is not None
        assert record.value is None or isinstance(record.value, GroupMetadataValue)
        return record.value

    # --- what members say

    def join(
        self,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        protocols: tuple[str, ...] | tuple[tuple[str, bytes], ...] = ("range",),
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = 9,
        group_id: str = GROUP,
        client_id: str = "app",
        reason: str | None = None,
    ) -> Joined:
        """One JoinGroup. Without a member id, and as a dynamic member, that of version 4 or later only brings an id."""
        pairs = [(name, name.encode()) if isinstance(name, str) else name for name in protocols]
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in pairs],
            reason=reason,
        )
        reply = Joined(version)
        self.write(
            self.classic.join(request, version=version, client_id=client_id, client_host="/192.0.2.1", reply=reply)
        )
        return reply

    def new_id(self, **how: Any) -> str:
        """What a new dynamic member is sent back with (KIP-394)."""
        asked = self.join(**how)
        assert asked.error == ErrorCode.MEMBER_ID_REQUIRED
        return str(asked.answer.member_id)

    def enter(self, **how: Any) -> tuple[str, Joined]:
        """A new dynamic member: both requests."""
        member_id = self.new_id(**how)
        return member_id, self.join(member_id, **how)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
        version: int = 5,
        group_id: str = GROUP,
    ) -> Synced:
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=given, assignment=data)
                for given, data in (assignments or {}).items()
            ],
        )
        reply = Synced(version)
        self.write(self.classic.sync(request, version=version, reply=reply))
        return reply

    def heartbeat(
        self, member_id: str, generation: int, instance_id: str | None = None, group_id: str = GROUP
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group_id, generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        return ErrorCode(self.classic.heartbeat(request).error_code)

    def leave(
        self, *members: str | tuple[str, str | None], version: int = 5, group_id: str = GROUP
    ) -> LeaveGroupResponse:
        identities = [
            LeaveGroupRequest.MemberIdentity(member_id=member, reason="done")
            if isinstance(member, str)
            else LeaveGroupRequest.MemberIdentity(member_id=member[0], group_instance_id=member[1])
            for member in members
        ]
        request = LeaveGroupRequest(group_id=group_id)
        if version >= 3:
            request.members = identities
        else:
            request.member_id = identities[0].member_id
        response: LeaveGroupResponse = self.write(self.classic.leave(request, version=version))
        encoder(LeaveGroupResponse, version)(response)
        return response

    # --- whole scenes

    def stable(self, count: int = 2, *, instances: tuple[str, ...] = (), **how: Any) -> list[str]:
        """A stable group of ``count`` dynamic members and one static member per instance; the leader first. Member n is
        assigned b"part n"."""
        waiting = [self.enter(**how) for _ in range(count)]
        statics = [self.join(instance_id=instance, **how) for instance in instances]
        self.advance_ms(2 * DELAY_MS)
        answers = [joined.answer for _, joined in waiting] + [joined.answer for joined in statics]
        assert all(answer.error_code == 0 for answer in answers)
        ids = [answer.member_id for answer in answers]
        leader = answers[0].leader
        assert leader == ids[0]
        generation, protocol = answers[0].generation_id, answers[0].protocol_name
        type_of = how.get("protocol_type", "consumer")
        assignments = {member_id: b"part %d" % at for at, member_id in enumerate(ids)}
        for at, member_id in reversed(list(enumerate(ids))):
            self.sync(
                member_id,
                generation,
                assignments if at == 0 else None,
                protocol_name=protocol,
                protocol_type=type_of,
            )
        assert self.group().state == "Stable"
        return ids
