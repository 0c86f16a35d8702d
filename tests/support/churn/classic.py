"""A member of a classic group, eager or cooperative, that assigns when it leads."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from headpond.protocol.codec import decoder, encoder
from headpond.protocol.schema.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from headpond.protocol.schema.heartbeat import HeartbeatRequest
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.leave_group import LeaveGroupRequest
from headpond.protocol.schema.sync_group import SyncGroupRequest
from support.churn.member import (
    COORDINATOR_ERRORS,
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    ChurnMember,
    Scene,
)

OK, MEMBER_ID_REQUIRED = 0, 79
VERSION = 1
EAGER, COOPERATIVE = "eager", "cooperative"


class ClassicMember(ChurnMember):
    def __init__(self, name: str, scene: Scene, protocol: str) -> None:
        super().__init__(name, scene)
        self._protocol = protocol

    async def _live(self) -> None:
        while not self._leaves:
            self.is_settled = False
            joined = await self._join()
            if joined is None:
                continue
            await self.pause()
            if not await self._sync(joined):
                continue
            while not self._leaves and await self._stays():
                await self.rest()

    # --- into a generation

    async def _join(self) -> Any:
        """The answer, or None: try again."""
        if self._protocol == EAGER:
            self.drop_all()
        subscription = ConsumerProtocolSubscription(
            topics=[self.scene.topic],
            owned_partitions=[
                ConsumerProtocolSubscription.TopicPartition(topic=self.scene.topic, partitions=sorted(self.positions))
            ],
        )
        metadata = struct.pack(">h", VERSION) + encoder(ConsumerProtocolSubscription, VERSION)(subscription)
        request = JoinGroupRequest(
            group_id=self.scene.group,
            session_timeout_ms=self.scene.session_ms,
            rebalance_timeout_ms=self.scene.rebalance_ms,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(self._protocol, metadata)],
        )
        answer = await self.wire.call(request, 9)
        if answer.error_code == OK:
            self.member_id, self.epoch = answer.member_id, answer.generation_id
            return answer
        if answer.error_code == MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return None
        await self._refused(answer.error_code)
        return None

    async def _sync(self, joined: Any) -> bool:
        assignments = []
        if joined.leader == self.member_id:
            assignments = assign(self.scene, joined, is_cooperative=self._protocol == COOPERATIVE)
        request = SyncGroupRequest(
            group_id=self.scene.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name=self._protocol,
            assignments=assignments,
        )
        answer = await self.wire.call(request, 5)
        if answer.error_code:
            await self._refused(answer.error_code)
            return False
        assignment, _ = decoder(ConsumerProtocolAssignment, VERSION)(answer.assignment, 2)
        given = {topic.topic: topic.partitions for topic in assignment.assigned_partitions}
        stamps = [topic for topic in given if topic != self.scene.topic]  # none, where the broker assigns
        assert stamps in ([], [_stamp(self.epoch)]), "an assignment of another generation"
        held = set(given.get(self.scene.topic, ()))
        must_join_again = bool(self.positions.keys() - held)  # cooperative: what it gave up is for others
        self.hold(held)
        if must_join_again:
            return False
        await self.find_positions()
        self.is_settled = True
        return True

    # --- in a generation

    async def _stays(self) -> bool:
        await self.pause()
        await self.commit()
        lost = self.scene.ledger.has_lost(self.name)
        request = HeartbeatRequest(group_id=self.scene.group, generation_id=self.epoch, member_id=self.member_id)
        code = (await self.wire.call(request, 4)).error_code
        if code != REBALANCE_IN_PROGRESS or self._protocol == EAGER:
            self.scene.ledger.heard(self.name, lost, is_accepted=code == OK)
        if code == OK:
            await self.find_positions()
            return True
        await self._refused(code)
        return code in COORDINATOR_ERRORS

    async def _refused(self, code: int) -> None:
        if code in (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID):
            self.drop_all()
            self.member_id, self.epoch = "", -1
        elif code == ILLEGAL_GENERATION:
            self.drop_all()
        elif code in COORDINATOR_ERRORS:
            await asyncio.sleep(self.scene.beat_s)
        else:
            assert code == REBALANCE_IN_PROGRESS, code

    async def _say_goodbye(self) -> None:
        if self.member_id:
            identity = LeaveGroupRequest.MemberIdentity(member_id=self.member_id, reason="the test says so")
            await self.wire.call(LeaveGroupRequest(group_id=self.scene.group, members=[identity]), 5)


def assign(scene: Scene, joined: Any, *, is_cooperative: bool) -> list[Any]:
    """Evenly. Cooperative: everybody keeps what it has up to its share; what is being given up nobody gets yet."""
    owned = {each.member_id: _owned(each.metadata) for each in joined.members}
    members = sorted(owned)
    everything = set(range(scene.ledger.partitions))
    share = -(-len(everything) // len(members))
    given: dict[str, list[int]] = {member: [] for member in members}
    if is_cooperative:
        for member in members:
            given[member] = sorted(owned[member])[:share]
        everything -= set().union(*owned.values())
    for partition in sorted(everything):
        given[min(members, key=lambda member: (len(given[member]), member))].append(partition)
    return [
        SyncGroupRequest.SyncGroupRequestAssignment(member, _written(scene.topic, partitions, joined.generation_id))
        for member, partitions in given.items()
    ]


def _owned(metadata: bytes) -> set[int]:
    subscription, _ = decoder(ConsumerProtocolSubscription, VERSION)(metadata, 2)
    return {partition for topic in subscription.owned_partitions for partition in topic.partitions}


def _written(topic: str, partitions: list[int], generation: int) -> bytes:
    given = {topic: partitions, _stamp(generation): []}
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=given[name]) for name in given
        ]
    )
    return struct.pack(">h", VERSION) + encoder(ConsumerProtocolAssignment, VERSION)(assignment)


def _stamp(generation: int) -> str:
    """A topic that does not exist: user data would say that the assignor is one of which the broker knows nothing."""
    return f"generation-{generation}"
