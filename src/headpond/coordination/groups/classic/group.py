"""A classic group: the broker counts members and generations, a member (the leader) assigns.

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable
               joins are parked      syncs are parked       heartbeats
      ^____________/   ^_____________________/________________/

Eager and cooperative rebalancing are the same here: the difference is in what members put into their metadata.

Here is what a group is and what its members may do; ``rebalance.py`` is how it moves. The members, the generation and
the assignments of the last completed rebalance are in the log (``stored.py``); everything else is gone with a crash:
members come back and find their session running anew.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from headpond.coordination.groups.classic.member import JoinReply, Member, Protocols
from headpond.coordination.groups.classic.protocols import CONSUMER, Support, elected, subscribed_topics
from headpond.coordination.groups.deadline import Alarm, Deadline
from headpond.coordination.groups.group import CommittedPartition
from headpond.coordination.records import CoordinatorRecord
from headpond.model import BrokerError, ErrorCode, invariant
from headpond.protocol.schema.classic_group_records import GroupMetadataKey
from headpond.protocol.schema.join_group import JoinGroupResponse
from headpond.protocol.schema.sync_group import SyncGroupResponse


class Phase(enum.Enum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_BEFORE = {
    Phase.EMPTY: (Phase.PREPARING,),
    Phase.PREPARING: (Phase.STABLE, Phase.COMPLETING, Phase.EMPTY),
    Phase.COMPLETING: (Phase.PREPARING,),
    Phase.STABLE: (Phase.COMPLETING,),
    Phase.DEAD: tuple(Phase),
}


class ClassicGroup:
    kind = "classic"

    def __init__(self, group_id: str, *, since_ms: int | None, join_alarm: Alarm, sync_alarm: Alarm) -> None:
        self.group_id = group_id
        self.phase = Phase.EMPTY
        self.previous_phase = Phase.DEAD
        self.since_ms = since_ms
        """When it came into its phase; None: stored by a Kafka that did not say."""
        self.generation = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_ids: dict[str, str] = {}
        """Instance id -> member id."""
        self.pending: dict[str, Deadline] = {}
        """Ids given out to members who have not come back with them (KIP-394)."""
        self.pending_sync: dict[str, None] = {}
        """Who has not asked for the assignment of this generation yet; a dict for its order."""
        self.has_new_member = False
        """Somebody joined during the initial delay: it is prolonged."""
        self.is_stored = False
        """The log knows the group."""
        self.has_no_leader_yet = False
        """It was a consumer group: the broker assigned, and everybody has to join again."""
        self.topics: frozenset[str] | None = None
        self.join_alarm = join_alarm
        self.sync_alarm = sync_alarm
        self._support = Support()
        self._parked_joins = 0

    # --- what it is

    @property
    def state(self) -> str:
        return self.phase.value

    @property
    def is_empty(self) -> bool:
        return self.phase is Phase.EMPTY

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type == CONSUMER

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def parked_joins(self) -> int:
        return self._parked_joins

    @property
    def has_all_joined(self) -> bool:
        return self._parked_joins == len(self.members) and not self.pending

    @property
    def can_rebalance(self) -> bool:
        return self.phase in _BEFORE[Phase.PREPARING]

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether somebody with these protocols fits in: one of them must be supported by all."""
        if self.phase is Phase.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        return self.protocol_type == protocol_type and self._support.has_one_for_all(names, len(self.members))

    def elected_from(self) -> set[str]:
        return self._support.by_all(len(self.members))

    def elected_protocol(self) -> str:
        return elected(self.members.values(), self.elected_from())

    # --- members come and go

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        instance_id = member.group_instance_id
        if instance_id is not None:
            invariant(instance_id not in self.static_ids, "two members of one instance id", self.group_id, instance_id)
            self.static_ids[instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._support.add(member)
        self.drop_pending(member.member_id)

    def update(
        self, member: Member, protocols: Protocols, *, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        self._support.remove(member)
        member.protocols = protocols
        self._support.add(member)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def remove(self, member_id: str, code: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """A member or a pending one. Its session ends; what it waits for is answered with ``code``."""
        self.drop_pending(member_id)
        member = self.members.get(member_id)
        if member is None:
            return
        self.answer_join(member, JoinGroupResponse(error_code=code))
        self.answer_sync(member, SyncGroupResponse(error_code=code))
        if member.session is not None:
            member.session.cancel()
        del self.members[member_id]
        self._support.remove(member)
        if member.group_instance_id is not None:
            del self.static_ids[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_sync.pop(member_id, None)

    def replace_static(self, old_id: str, new_id: str) -> Member:
        """The instance came back with a new member id: whoever waits under the old one is fenced."""
        old = self.members.pop(old_id)
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self.answer_join(old, JoinGroupResponse(error_code=fenced, member_id=old_id, protocol_name=None))
        self.answer_sync(old, SyncGroupResponse(error_code=fenced))
        if old.session is not None:
            old.session.cancel()
        new = old.under_new_id(new_id)
        self.members[new_id] = new
        if self.leader_id == old_id:
            self.leader_id = new_id
        invariant(new.group_instance_id is not None, "replacing a dynamic member", self.group_id, old_id)
        self.static_ids[str(new.group_instance_id)] = new_id
        return new

    def drop_pending(self, member_id: str) -> None:
        session = self.pending.pop(member_id, None)
        if session is not None:
            session.cancel()

    # --- parked requests

    def park_join(self, member: Member, reply: JoinReply) -> None:
        # A second JoinGroup of a member comes over another connection: nobody reads the answer to the first any more.
        again = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
        self.answer_join(member, again)
        member.join_reply = reply
        self._parked_joins += 1

    def answer_join(self, member: Member, response: JoinGroupResponse) -> bool:
        """False: it does not wait."""
        reply, member.join_reply = member.join_reply, None
        if reply is None:
            return False
        self._parked_joins -= 1
        reply(response)
        return True

    def answer_sync(self, member: Member, response: SyncGroupResponse) -> bool:
        reply, member.sync_reply = member.sync_reply, None
        if reply is None:
            return False
        reply(response)
        return True

    # --- phases

    def move_to(self, phase: Phase, now_ms: int) -> None:
        invariant(self.phase in _BEFORE[phase], "a group can't move so", self.group_id, self.phase, phase)
        self.previous_phase, self.phase, self.since_ms = self.phase, phase, now_ms

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader has joined; False: nobody has."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].join_reply is None:
            joined = (member_id for member_id, member in self.members.items() if member.join_reply is not None)
            leader_id = next(joined, None)
            if leader_id is None:
                return False
            self.leader_id = leader_id
        return True

    def begin_generation(self, now_ms: int) -> None:
        self.generation = (self.generation + 1) & 0x7FFFFFFF
        self.protocol_name = self.elected_protocol() if self.members else None
        self.look_up_topics()
        self.move_to(Phase.COMPLETING if self.members else Phase.EMPTY, now_ms)
        self.pending_sync.clear()

    def look_up_topics(self) -> None:
        self.topics = None
        if self.is_of_consumers:
            if not self.members:
                self.topics = frozenset()
            elif self.protocol_name is not None:
                self.topics = subscribed_topics(self.members.values(), self.protocol_name)

    def end(self, code: ErrorCode, now_ms: int) -> None:
        """It is gone from here: nothing of it fires any more, and nobody waits on."""
        self.join_alarm.cancel()
        self.sync_alarm.cancel()
        for member_id in list(self.pending):
            self.drop_pending(member_id)
        for member in self.members.values():
            if member.session is not None:
                member.session.cancel()
            self.answer_join(member, JoinGroupResponse(error_code=code, member_id=member.member_id))
            self.answer_sync(member, SyncGroupResponse(error_code=code))
        self.move_to(Phase.DEAD, now_ms)

    # --- what members, and others, may do now

    def member_error(self, member_id: str, group_instance_id: str | None) -> ErrorCode | None:
        if group_instance_id is not None:
            current_id = self.static_ids.get(group_instance_id)
            if current_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return None if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_commit(
        self,
        *,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        is_transactional: bool,
        request_version: int,
        partitions: Sequence[CommittedPartition] = (),
    ) -> None:
        del request_version, partitions  # the same in all versions, and for whatever it commits
        if self.phase is Phase.DEAD:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation_or_epoch < 0 and self.phase is Phase.EMPTY:
            return  # a consumer that assigns itself, or an operator
        if generation_or_epoch >= 0 or member_id or group_instance_id is not None:
            error = self.member_error(member_id, group_instance_id)
            if error is not None:
                raise BrokerError(error)
            if generation_or_epoch != self.generation:
                raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional and self.phase is not Phase.EMPTY:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.phase is Phase.COMPLETING:
            raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        del member_id, member_epoch  # only the new protocol fences readers
        self._require_alive()

    def check_delete(self) -> None:
        self._require_alive()
        if self.phase is not Phase.EMPTY:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete_offsets(self) -> None:
        self._require_alive()
        if self.phase is not Phase.EMPTY and not self.is_of_consumers:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def _require_alive(self) -> None:
        if self.phase is Phase.DEAD:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is in dead state.")

    def is_subscribed_to(self, topic: str) -> bool:
        """Consumers whose subscriptions can't be read might be subscribed to anything."""
        return self.is_of_consumers if self.topics is None else topic in self.topics

    def offsets_expire_since_ms(self, committed_ms: int) -> int | None:
        if not self.protocol_type:
            return committed_ms
        if self.phase is Phase.EMPTY:
            return committed_ms if self.since_ms is None else self.since_ms
        if self.phase is Phase.STABLE and self.is_of_consumers and self.topics is not None:
            return committed_ms
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]
