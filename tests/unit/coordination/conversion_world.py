"""A partition's groups of every kind and their offsets, without a broker: what is decided is in the log at once, and
answered when it is committed, as the coordinator's runtime does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.classic import ClassicGroup
from headpond.coordination.groups.consumer import ConsumerGroup, TopicFacts, embedded
from headpond.coordination.groups.group import Group
from headpond.coordination.groups.machine import GroupMachine
from headpond.coordination.groups.stored_types import GROUP_CODEC
from headpond.coordination.runtime import Decision
from headpond.coordination.slices import finish_now
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headpond.protocol.schema.heartbeat import HeartbeatRequest
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.leave_group import LeaveGroupRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from headpond.protocol.schema.sync_group import SyncGroupRequest
from simulation.harness.chance import SeededRandom
from simulation.harness.clock import ManualClock
from unit.coordination.consumer_world import Held, assignment, subscription, topic_id
from unit.coordination.fixed_topics import FixedTopics

GROUP = "readers"
SESSION_MS = 10_000
REBALANCE_MS = 30_000
OFFSETS_TYPE, CLASSIC_GROUP_TYPE = 1, 2
TopicPartition = tuple[str, int]


class Asked:
    """One request: what it is answered, once it is."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.is_written = False
        self.refused: ErrorCode | None = None

    @property
    def is_open(self) -> bool:
        return self.refused is None and not (self.is_written and self.answers)

    @property
    def answer(self) -> Any:
        assert len(self.answers) == 1, f"{len(self.answers)} answers"
        return self.answers[0]

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.answer.error_code) if self.refused is None else self.refused


class ConversionWorld:
    def __init__(self, settings: GroupSettings, **partition_counts: int) -> None:
        self.settings = settings
        self.clock = ManualClock()
        self._random = SeededRandom(1)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.committed_end = 0
        self.holds_commits = False
        self.append_error: ErrorCode | None = None
        self._facts = {
            name: TopicFacts(topic_id(at), count) for at, (name, count) in enumerate(partition_counts.items())
        }
        self._version = 1
        self._uncommitted: list[tuple[int, Decision[Any], Asked]] = []
        self._soon: list[Callable[[GroupMachine], Decision[None]]] = []
        self.machine = self._started()

    # --- the coordinator's life

    def _started(self) -> GroupMachine:
        self._soon = soon = []
        machine = GroupMachine(
            settings=lambda: self.settings,
            clock=self.clock,
            random=self._random,
            write_soon=lambda _, decide: soon.append(decide),
            topics=lambda: self.topics,
        )
        _replay(machine, self.log)
        machine.loaded()
        return machine

    def restart(self, *, loses_uncommitted: bool) -> None:
        self.machine.close()
        waiting, self._uncommitted = self._uncommitted, []
        for _, decision, asked in waiting:
            _fail(decision, asked, ErrorCode.NOT_COORDINATOR)
        if loses_uncommitted:
            del self.log[self.committed_end :]
        self.committed_end = len(self.log)
        self.machine = self._started()
        self.drain()

    def rebuilt(self) -> GroupMachine:
        """What another coordinator would read from the log now."""
        machine = GroupMachine(
            settings=lambda: self.settings,
            clock=self.clock,
            random=SeededRandom(1),
            write_soon=lambda what, decide: None,
            topics=lambda: self.topics,
        )
        _replay(machine, self.log)
        return machine

    def kinds_in_log(self) -> set[str]:
        """Of the records that compaction would leave."""
        left = [key for key, value in dict(self.log).items() if value is not None]
        types = {int.from_bytes(key[:2]) for key in left} - {OFFSETS_TYPE}
        return {"classic" if each == CLASSIC_GROUP_TYPE else "consumer" for each in types}

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.drain()

    def drain(self) -> None:
        while self._soon:
            self._write(self._soon.pop(0), Asked())

    def commit_log(self) -> None:
        self.committed_end = len(self.log)
        while self._uncommitted and self._uncommitted[0][0] <= self.committed_end:
            _finish(*self._uncommitted.pop(0)[1:])
        self.drain()

    def _write(self, decide: Callable[[GroupMachine], Decision[Any]], asked: Asked) -> None:
        try:
            decision = decide(self.machine)
        except BrokerError as refused:
            asked.refused = refused.code
            return
        if decision.records and self.append_error is not None:
            _fail(decision, asked, self.append_error)
            return
        for record in decision.records:
            key, value = GROUP_CODEC.encode(record)
            self.log.append((key, value))
            _replay(self.machine, [(key, value)])
        if not self.holds_commits:
            self.committed_end = len(self.log)
        if self.committed_end < len(self.log):
            self._uncommitted.append((len(self.log), decision, asked))
        else:
            _finish(decision, asked)

    def _ask(self, decide: Callable[[GroupMachine, Asked], Decision[Any]]) -> Asked:
        asked = Asked()
        self._write(lambda machine: decide(machine, asked), asked)
        self.drain()
        return asked

    # --- what is there

    @property
    def topics(self) -> FixedTopics:
        return FixedTopics(self._facts, self._version)

    def grow(self, name: str, more: int) -> None:
        known = self._facts[name]
        self._version += 1
        self._facts = {**self._facts, name: TopicFacts(known.topic_id, known.partition_count + more)}
        self.machine.topics_changed([name])

    def partitions_of(self, names: Sequence[str]) -> set[TopicPartition]:
        return {(name, each) for name in names for each in range(self._facts[name].partition_count)}

    def named(self, topic_partitions: Sequence[Any]) -> set[TopicPartition]:
        names = {facts.topic_id: name for name, facts in self._facts.items()}
        return {(names[topic.topic_id], each) for topic in topic_partitions for each in topic.partitions}

    @property
    def group(self) -> Group | None:
        return self.machine.groups.get(GROUP)

    @property
    def consumer_group(self) -> ConsumerGroup | None:
        return self.group if isinstance(self.group, ConsumerGroup) else None

    @property
    def members(self) -> Mapping[str, Any]:
        group = self.group
        return group.members if isinstance(group, ClassicGroup | ConsumerGroup) else {}

    def offsets(self, machine: GroupMachine | None = None) -> dict[TopicPartition, int]:
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=None)
        found = finish_now((machine or self.machine).offsets.fetch(wanted, require_stable=False))
        return {(t.name, row.partition_index): row.committed_offset for t in found.topics for row in t.partitions}

    # --- what members say

    def beat(self, member_id: str, epoch: int, owned: Held | None = None, **fields: Any) -> Asked:
        if owned is not None:
            fields["topic_partitions"] = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=self._facts[name].topic_id, partitions=list(partitions)
                )
                for name, partitions in owned.items()
            ]
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch, **fields)
        return self._ask(
            lambda machine, _: machine.consumer.heartbeat(request, version=1, client_id="new", client_host="/192.0.2.1")
        )

    def join(
        self, member_id: str, topics: Sequence[str], owned: Held, *, names: Sequence[str], instance_id: str | None
    ) -> Asked:
        metadata = subscription(topics, owned)
        request = JoinGroupRequest(
            group_id=GROUP,
            member_id=member_id,
            group_instance_id=instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names],
        )
        return self._ask(
            lambda machine, asked: machine.join(
                request, version=9, client_id="old", client_host="/192.0.2.2", reply=asked.answers.append
            )
        )

    def sync(
        self, member_id: str, generation: int, given: Mapping[str, Held], *, name: str, instance_id: str | None
    ) -> Asked:
        request = SyncGroupRequest(
            group_id=GROUP,
            member_id=member_id,
            generation_id=generation,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocol_name=name,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=each, assignment=assignment(held))
                for each, held in given.items()
            ],
        )
        return self._ask(lambda machine, asked: machine.sync(request, version=5, reply=asked.answers.append))

    def classic_beat(self, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP, member_id=member_id, generation_id=generation, group_instance_id=instance_id
        )
        return ErrorCode(self.machine.heartbeat(request).error_code)

    def leave(self, member_id: str, instance_id: str | None) -> Asked:
        identity = LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=instance_id)
        request = LeaveGroupRequest(group_id=GROUP, members=[identity])
        return self._ask(lambda machine, _: machine.leave(request, version=5))

    def commit(
        self, partition: TopicPartition, offset: int, member_id: str = "", generation: int = -1, **fields: Any
    ) -> Asked:
        row = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=partition[1], committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=GROUP,
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=partition[0], partitions=[row])],
            **fields,
        )
        return self._ask(lambda machine, _: machine.commit(request, 9))


def read_subscription(metadata: bytes) -> tuple[list[str], Held]:
    """The topics, and what the member holds."""
    read = embedded.read_subscription(metadata)
    return read.topics, {each.topic: each.partitions for each in read.owned_partitions}


def _replay(machine: GroupMachine, data: Sequence[tuple[bytes, bytes | None]]) -> None:
    for key, value in data:
        record = GROUP_CODEC.decode(key, value)
        assert record is not None
        machine.replay(record, None)


def _finish(decision: Decision[Any], asked: Asked) -> None:
    if decision.on_committed is not None:
        decision.on_committed()
    asked.is_written = True
    if decision.answer is not None:
        asked.answers.append(decision.answer)


def _fail(decision: Decision[Any], asked: Asked, code: ErrorCode) -> None:
    if decision.on_failed is not None:
        decision.on_failed(code)
    asked.refused = code
