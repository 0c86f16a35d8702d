"""A member of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup. Eager, with Kafka's ``range`` assignor.

A generation   revoke everything, JoinGroup (answered when all members have joined), SyncGroup with everybody's
               assignment if this member leads, without one if not; one heartbeat; then the assignment is owned.
               That heartbeat is not in Kafka's clients: SyncGroup does not always restart the session, so that only
               a heartbeat tells the member when its session began at the earliest.
Refusals       REBALANCE_IN_PROGRESS: join again · ILLEGAL_GENERATION: lost, join again · UNKNOWN_MEMBER_ID: lost, join
               again under a new id · FENCED_INSTANCE_ID and all others: fatal
Leader         Looks for topics with more partitions than it assigned, and for topics that have appeared, and joins
               again: a rebalance for all.
Static         With ``instance_id`` it leaves without telling, as in Kafka: it may be back before its session ends.
Not done       Cooperative rebalances, other assignors, racks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headpond.client.consumer_protocol import (
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from headpond.client.errors import ClientError
from headpond.client.group.member import Member
from headpond.client.group.offsets import Identity
from headpond.client.group.ranges import RANGE, Subscriber, assign_ranges
from headpond.model import ErrorCode
from headpond.protocol.schema.heartbeat import HeartbeatRequest
from headpond.protocol.schema.join_group import JoinGroupRequest, JoinGroupResponse
from headpond.protocol.schema.leave_group import LeaveGroupRequest
from headpond.protocol.schema.sync_group import SyncGroupRequest
from headpond.protocol.types import Message

CONSUMER = "consumer"
REBALANCE_GRACE_S = 5.0
"""JoinGroup and SyncGroup are answered within the rebalance time-out; this much later we stop waiting, as Kafka's."""
REJOIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)

Assignments = list[SyncGroupRequest.SyncGroupRequestAssignment]


class ClassicMember(Member):
    NO_EPOCH = -1

    _partition_counts: dict[str, int] | None = None  # of the topics of all members, if this one leads
    _look_at_s = 0.0
    _must_rejoin = False
    _is_joining = False

    async def _live(self) -> None:
        self._session.end()
        self._must_rejoin = False
        self._partition_counts = None
        self._is_joining = True
        joined = await self._join()
        is_in = joined is not None and await self._sync(joined)
        self._is_joining = False
        if is_in:
            await self._stay()

    # ---- into a generation

    async def _join(self) -> JoinGroupResponse | None:
        """None: not now."""
        self.epoch = self.NO_EPOCH
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=CONSUMER,
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(RANGE, write_subscription(self._topics))],
        )
        response: JoinGroupResponse | None = await self._ask(request, self._rebalance_wait_s)
        if response is not None and response.error_code == ErrorCode.NONE:
            self.member_id, self.epoch = response.member_id, response.generation_id
            return response
        if response is not None and response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return None
        await self._try_later(response)
        return None

    async def _sync(self, joined: JoinGroupResponse) -> bool:
        """False: not now."""
        assignments = await self._assignments(joined) if joined.leader == self.member_id else []
        if assignments is None:
            await self._try_later(None)
            return False
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.epoch,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=CONSUMER,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        response = await self._ask(request, self._rebalance_wait_s)
        if response is None or response.error_code:
            await self._try_later(response)
            return False
        self._session.begin(self._client.clock.monotonic())  # nothing is owned yet: the heartbeat is what counts
        if not await self._is_confirmed():
            return False
        self._is_joining = False
        await self._own(dict.fromkeys(read_assignment(response.assignment), b""))
        return True

    async def _is_confirmed(self) -> bool:
        """By a heartbeat, from which the session can be counted."""
        while not await self._beat():
            if self._must_rejoin or not self._session.is_alive:
                return False
            await self._rest()
        return self._session.is_alive

    async def _try_later(self, response: Any) -> None:
        """After a refusal, or without an answer."""
        code = ErrorCode.NONE if response is None else response.error_code
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif code not in (ErrorCode.NONE, *REJOIN):
            self._refused(code)
        if self.failure is None:
            await self._client.clock.sleep(self._backoff.next_s())

    @property
    def _rebalance_wait_s(self) -> float:
        return self._settings.rebalance_timeout_ms / 1_000 + REBALANCE_GRACE_S

    # ---- the leader

    async def _assignments(self, joined: JoinGroupResponse) -> Assignments | None:
        """For everybody; None: the partitions could not be learned."""
        subscribers = [
            Subscriber(one.member_id, one.group_instance_id, read_subscription(one.metadata)) for one in joined.members
        ]
        counts = await self._counts({topic for one in subscribers for topic in one.topics})
        if counts is None:
            return None
        self._partition_counts = counts
        if joined.skip_assignment:  # a static leader is back, and nothing else has changed (KIP-814)
            return []
        return [
            SyncGroupRequest.SyncGroupRequestAssignment(member_id, write_assignment(partitions))
            for member_id, partitions in sorted(assign_ranges(subscribers, counts).items())
        ]

    async def _counts(self, topics: Iterable[str]) -> dict[str, int] | None:
        """Partitions by topic, 0 where there is no such topic; None: no answer."""
        interval_s = self._settings.heartbeat_interval_ms / 1_000
        wanted = sorted(topics)
        try:
            view = await self._client.metadata(wanted, interval_s)
        except ClientError as error:
            if not error.is_retriable:
                self._fail(error)
            return None
        counts = {name: len(view.topics[name].partitions) if name in view.topics else 0 for name in wanted}
        next_s = self._settings.metadata_max_age_ms / 1_000 if all(counts.values()) else interval_s
        self._look_at_s = self._client.clock.monotonic() + next_s
        return counts

    async def _look_for_partitions(self) -> None:
        if self._partition_counts is None or self._client.clock.monotonic() < self._look_at_s:
            return
        counts = await self._counts(self._partition_counts)
        if counts is not None and counts != self._partition_counts:
            self._must_rejoin = True

    # ---- in a generation

    async def _stay(self) -> None:
        while self._session.is_alive and not self._must_rejoin:
            await self._rest()
            if self._session.is_alive:
                await self._beat()
                await self._look_for_partitions()
        if self._session.is_alive:
            await self._revoke(self.assignment)
        await self._lose()

    async def _beat(self) -> bool:
        sent_s = self._client.clock.monotonic()
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.epoch,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        response = await self._ask_heartbeat(request)
        if response is None:
            return False
        self._beat_after(self._settings.heartbeat_interval_ms / 1_000)
        code: int = response.error_code
        if code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._must_rejoin = self._must_rejoin or code != ErrorCode.NONE
            self._session.heard(sent_s, is_settled=code == ErrorCode.NONE)
            return code == ErrorCode.NONE
        self._session.end()
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif code != ErrorCode.ILLEGAL_GENERATION:
            self._refused(code)
        return False

    def _fetch_identity(self) -> Identity | None:
        return None

    # ---- out of the group

    def _farewell(self) -> Message | None:
        if self._is_joining:
            # A JoinGroup may be waiting at the coordinator, which answers a connection's requests in order.
            self._client.close_lane(self._group.lane)
        if self.instance_id is not None or not self.member_id:
            return None
        identity = LeaveGroupRequest.MemberIdentity(member_id=self.member_id, reason="the consumer is closed")
        return LeaveGroupRequest(group_id=self.group_id, members=[identity])
