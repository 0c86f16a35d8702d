"""Consumer groups without a broker: a log in memory, topics and a clock that the test moves, members that behave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import pack, unpack_from
from typing import Any

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.classic import ClassicGroup, ClassicGroups
from headpond.coordination.groups.consumer import ConsumerGroup, ConsumerGroups, TopicFacts
from headpond.coordination.groups.group import Group
from headpond.coordination.groups.stored_types import GROUP_CODEC
from headpond.coordination.runtime import Decision
from headpond.coordination.slices import InSlices, at_once
from headpond.model import BrokerError, ErrorCode, TopicId
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.schema.classic_group_records import GroupMetadataKey, GroupMetadataValue
from headpond.protocol.schema.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from headpond.protocol.schema.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from headpond.protocol.schema.heartbeat import HeartbeatRequest
from headpond.protocol.schema.join_group import JoinGroupRequest, JoinGroupResponse
from headpond.protocol.schema.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headpond.protocol.schema.sync_group import SyncGroupRequest, SyncGroupResponse
from simulation.harness.chance import SeededRandom
from simulation.harness.clock import ManualClock
from unit.coordination.fixed_topics import FixedTopics

GROUP = "readers"
REBALANCE_MS = 30_000
Held = dict[str, list[int]]


def topic_id(number: int) -> TopicId:
    return TopicId(bytes([number]) * 16)


def no_wait(**changes: Any) -> GroupSettings:
    """Assigns at once: most tests are not about the interval."""
    return GroupSettings(consumer_assignment_interval_ms=0, initial_rebalance_delay_ms=0, **changes)


class World:
    """One partition's coordinator. ``log`` outlives ``restart``. Every record goes through its bytes."""

    def __init__(self, settings: GroupSettings | None = None, **partition_counts: int) -> None:
        self.settings = settings or no_wait()
        self.clock = ManualClock()
        self.random = SeededRandom(1)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.batches: list[list[tuple[Any, Any]]] = []
        self.append_error: ErrorCode | None = None
        self.is_too_full = False
        """Nothing that is to be written soon is even decided on."""
        self.in_slices: InSlices = at_once
        self._facts: dict[str, TopicFacts] = {}
        self._version = 0
        self._soon: list[Callable[[Any], Decision[None]]] = []
        for name, count in partition_counts.items():
            self._put_topic(name, count)
        self.start()

    # --- the coordinator's life

    def start(self) -> None:
        self.groups: dict[str, Group] = {}
        self._soon = soon = []
        self.classic = ClassicGroups(
            self.groups, lambda: self.settings, self.clock, self.random, lambda _, decide: soon.append(decide)
        )
        self.consumer = ConsumerGroups(
            self.groups,
            lambda: self.settings,
            self.clock,
            self.random,
            lambda _, decide: soon.append(decide),
            lambda: self.topics,
            in_slices=lambda what, work, done: self.in_slices(what, work, done),
        )
        for key, value in self.log:
            self._replay(key, value)
        self.classic.loaded()
        self.consumer.loaded()

    def restart(self) -> None:
        self.classic.close()
        self.consumer.close()
        self.start()

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.drain()

    def drain(self) -> None:
        if self.is_too_full:
            self._soon.clear()
        while self._soon:
            self.write(self._soon.pop(0)(self))

    def write(self, decision: Decision[Any]) -> Any:
        if decision.records:
            if self.append_error is not None:
                if decision.on_failed is not None:
                    decision.on_failed(self.append_error)
                raise BrokerError(self.append_error)
            self.batches.append([(record.key, record.value) for record in decision.records])
            for record in decision.records:
                key, value = GROUP_CODEC.encode(record)
                self.log.append((key, value))
                self._replay(key, value)
        if decision.on_committed is not None:
            decision.on_committed()
        return decision.answer

    def _replay(self, key: bytes, value: bytes | None) -> None:
        record = GROUP_CODEC.decode(key, value)
        assert record is not None
        if isinstance(record.key, GroupMetadataKey):
            assert record.value is None or isinstance(record.value, GroupMetadataValue)
            self.classic.replay(record.key, record.value)
        else:
            self.consumer.replay(record.key, record.value)

    # --- topics

    @property
    def topics(self) -> FixedTopics:
        return FixedTopics(self._facts, self._version)

    def id_of(self, name: str) -> TopicId:
        return self._facts[name].topic_id

    def put_topic(self, name: str, partition_count: int) -> None:
        self._put_topic(name, partition_count)
        self.consumer.topics_changed([name])

    def drop_topic(self, name: str) -> None:
        del self._facts[name]
        self._version += 1
        self.consumer.topics_changed([name])

    def _put_topic(self, name: str, partition_count: int) -> None:
        known = self._facts.get(name)
        self._version += 1
        self._facts[name] = TopicFacts(known.topic_id if known else topic_id(self._version), partition_count)

    # --- members of the new protocol

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        group_id: str = GROUP,
        version: int = 1,
        host: str = "/192.0.2.1",
        **fields: Any,
    ) -> ConsumerGroupHeartbeatResponse:
        owned: Mapping[str, Sequence[int]] | None = fields.pop("owned", None)
        if owned is not None:
            fields["topic_partitions"] = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=self.id_of(name), partitions=list(partitions))
                for name, partitions in owned.items()
            ]
        request = ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch, **fields)
        decision = self.consumer.heartbeat(request, version=version, client_id="client", client_host=host)
        response: ConsumerGroupHeartbeatResponse = self.write(decision)
        self.drain()
        data = encoder(ConsumerGroupHeartbeatResponse, version)(response)
        answer: ConsumerGroupHeartbeatResponse = decoder(ConsumerGroupHeartbeatResponse, version)(data, 0)[0]
        return answer

    def join(self, member_id: str, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        fields.setdefault("rebalance_timeout_ms", REBALANCE_MS)
        if "subscribed_topic_regex" not in fields:
            fields.setdefault("subscribed_topic_names", list(topics))
        return self.beat(member_id, 0, owned={}, **fields)

    def leave(self, member_id: str, epoch: int = -1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        return self.beat(member_id, epoch, **fields)

    def error(self, act: Callable[[], Any]) -> tuple[ErrorCode, str]:
        """What ``act`` is refused with; nothing is written."""
        length = len(self.log)
        try:
            act()
        except BrokerError as refused:
            assert len(self.log) == length
            return refused.code, refused.message
        raise AssertionError("not refused")

    def held(self, response: ConsumerGroupHeartbeatResponse) -> Held | None:
        if response.assignment is None:
            return None
        names = {facts.topic_id: name for name, facts in self._facts.items()}
        return {names[TopicId(each.topic_id)]: each.partitions for each in response.assignment.topic_partitions}

    def group(self, group_id: str = GROUP) -> ConsumerGroup:
        group = self.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    def classic_group(self, group_id: str = GROUP) -> ClassicGroup:
        group = self.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    def owns(self, member_id: str, group_id: str = GROUP) -> Held:
        names = {facts.topic_id: name for name, facts in self._facts.items()}
        return {names[each]: sorted(held) for each, held in self.group(group_id).members[member_id].assigned.items()}

    # --- members of the classic protocol

    def classic_join(
        self,
        member_id: str,
        *topics: str,
        owned: Mapping[str, Sequence[int]] | None = None,
        version: int = 9,
        names: Sequence[str] = ("cooperative-sticky", "range"),
        **fields: Any,
    ) -> list[JoinGroupResponse]:
        """The answers so far: none while it is parked."""
        metadata = subscription(topics, owned or {})
        protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names]
        fields.setdefault("session_timeout_ms", 10_000)
        fields.setdefault("rebalance_timeout_ms", REBALANCE_MS)
        request = JoinGroupRequest(
            group_id=GROUP, member_id=member_id, protocol_type="consumer", protocols=protocols, **fields
        )
        answers: list[JoinGroupResponse] = []
        door = self.consumer.classic_door if self.consumer.serves(GROUP) else self.classic
        self.write(
            door.join(request, version=version, client_id="client", client_host="/192.0.2.9", reply=answers.append)
        )
        self.drain()
        return answers

    def classic_sync(self, member_id: str, generation: int, **fields: Any) -> SyncGroupResponse:
        fields.setdefault("protocol_type", "consumer")
        fields.setdefault("protocol_name", "cooperative-sticky")
        given: Mapping[str, Held] = fields.pop("given", {})
        request = SyncGroupRequest(
            group_id=GROUP,
            member_id=member_id,
            generation_id=generation,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=each, assignment=assignment(held))
                for each, held in given.items()
            ],
            **fields,
        )
        answers: list[SyncGroupResponse] = []
        door = self.consumer.classic_door if self.consumer.serves(GROUP) else self.classic
        self.write(door.sync(request, version=5, reply=answers.append))
        self.drain()
        assert len(answers) == 1
        return answers[0]

    def classic_beat(self, member_id: str, generation: int, **fields: Any) -> ErrorCode:
        request = HeartbeatRequest(group_id=GROUP, member_id=member_id, generation_id=generation, **fields)
        door = self.consumer.classic_door if self.consumer.serves(GROUP) else self.classic
        response = door.heartbeat(request)
        self.drain()
        return ErrorCode(response.error_code)

    def classic_leave(self, *members: tuple[str, str | None]) -> LeaveGroupResponse:
        request = LeaveGroupRequest(
            group_id=GROUP,
            members=[
                LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=instance_id)
                for member_id, instance_id in members
            ],
        )
        door = self.consumer.classic_door if self.consumer.serves(GROUP) else self.classic
        response: LeaveGroupResponse = self.write(door.leave(request, version=5))
        self.drain()
        return response

    def classic_member(self, *topics: str, given: Held | None = None) -> str:
        """Joins a new classic group, leads it, and assigns itself ``given``; returns its id."""
        member_id = self.classic_join("", *topics)[0].member_id
        answers = self.classic_join(member_id, *topics)
        self.advance(0.01)
        self.classic_sync(member_id, answers[0].generation_id, given={member_id: given or {}})
        return member_id


def subscription(topics: Sequence[str], owned: Mapping[str, Sequence[int]], version: int = 3) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=list(topics),
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=name, partitions=list(partitions))
            for name, partitions in owned.items()
        ],
    )
    return pack(">h", version) + encoder(ConsumerProtocolSubscription, version)(message)


def assignment(held: Held, user_data: bytes | None = None) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=partitions)
            for name, partitions in held.items()
        ],
        user_data=user_data,
    )
    return pack(">h", 0) + encoder(ConsumerProtocolAssignment, 0)(message)


def read_assignment(data: bytes) -> tuple[int, Held]:
    version = unpack_from(">h", data)[0]
    message: ConsumerProtocolAssignment = decoder(ConsumerProtocolAssignment, version)(data, 2)[0]
    return version, {each.topic: each.partitions for each in message.assigned_partitions}
