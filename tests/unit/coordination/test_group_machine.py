"""Offsets, classic groups and consumer groups together: what concerns all of them, and what a restart knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from headpond.config.groups import GroupSettings
from headpond.coordination.groups import machine as machine_module
from headpond.coordination.groups import offsets as offsets_module
from headpond.coordination.groups.consumer import TopicFacts
from headpond.coordination.groups.machine import GroupMachine
from headpond.coordination.groups.stored_types import GROUP_CODEC
from headpond.coordination.home import Ended, Producer
from headpond.coordination.records import CoordinatorRecord
from headpond.coordination.runtime import Decision
from headpond.coordination.slices import Work, finish_now
from headpond.model import BrokerError, ErrorCode, TopicId
from headpond.protocol.schema.classic_group_records import LegacyOffsetCommitKey, LegacyOffsetCommitValue
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headpond.protocol.schema.heartbeat import HeartbeatRequest
from headpond.protocol.schema.join_group import JoinGroupRequest, JoinGroupResponse
from headpond.protocol.schema.leave_group import LeaveGroupRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from headpond.protocol.schema.sync_group import SyncGroupRequest, SyncGroupResponse
from headpond.protocol.schema.txn_offset_commit import TxnOffsetCommitRequest
from simulation.harness.chance import SeededRandom
from simulation.harness.clock import ManualClock
from unit.coordination.fixed_topics import FixedTopics

A = TypeVar("A")
TOPIC = "letters"
TOPIC_ID = TopicId(b"\1" * 16)
SETTINGS = GroupSettings(initial_rebalance_delay_ms=0, retention_ms=60_000, retention_check_interval_ms=10_000)


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.topics = FixedTopics({TOPIC: TopicFacts(TOPIC_ID, 4)})
        self.log: list[tuple[bytes, bytes | None, Producer | None] | Ended] = []
        self.batches: list[int] = []
        self.pauses = 0
        self.machine = self._new_machine()
        self.machine.loaded()

    def _new_machine(self) -> GroupMachine:
        return GroupMachine(
            settings=lambda: SETTINGS,
            clock=self.clock,
            random=SeededRandom(1),
            write_soon=lambda what, decide: self._soon(decide),
            topics=lambda: self.topics,
            in_slices=self._in_slices,
        )

    def _in_slices(self, what: str, work: Work[A], done: Callable[[A], None]) -> None:
        def finish() -> None:
            try:
                while True:
                    next(work)
                    self.pauses += 1
            except StopIteration as finished:
                done(finished.value)

        self.clock.call_later(0, finish)

    def _soon(self, decide: Callable[[GroupMachine], Decision[None]]) -> None:
        self.clock.call_later(0, lambda: self.carry_out(decide(self.machine)))

    def carry_out(self, decision: Decision[A]) -> A:
        if decision.records:
            self.batches.append(len(decision.records))
        for record in decision.records:
            key, value = GROUP_CODEC.encode(record)
            self.log.append((key, value, decision.producer))
            self._replay(key, value, decision.producer)
        if decision.on_committed is not None:
            decision.on_committed()
        return decision.answer

    def _replay(self, key: bytes, value: bytes | None, producer: Producer | None) -> None:
        record = GROUP_CODEC.decode(key, value)
        assert record is not None
        self.machine.replay(record, producer)

    def restart(self) -> None:
        self.machine.close()
        self.machine = self._new_machine()
        for entry in self.log:
            if isinstance(entry, Ended):
                self.machine.replay_end(entry)
            else:
                self._replay(*entry)
        self.machine.loaded()

    # --- members

    def join(self, group: str, member_id: str = "") -> JoinGroupResponse:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol("range", b"")
        request = JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="connect",
            protocols=[protocol],
        )
        answers: list[JoinGroupResponse] = []
        decision = self.machine.join(request, version=3, client_id="c", client_host="/h", reply=answers.append)
        self.carry_out(decision)
        self.clock.advance(0.01)
        (answer,) = answers
        return answer

    def sync(self, group: str, joined: JoinGroupResponse) -> SyncGroupResponse:
        mine = SyncGroupRequest.SyncGroupRequestAssignment(joined.member_id, b"all")
        request = SyncGroupRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=[mine]
        )
        answers: list[SyncGroupResponse] = []
        self.carry_out(self.machine.sync(request, version=3, reply=answers.append))
        (answer,) = answers
        return answer

    def beat(self, group: str, joined: JoinGroupResponse) -> ErrorCode:
        request = HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id)
        return ErrorCode(self.machine.heartbeat(request).error_code)

    def leave(self, group: str, member_id: str) -> None:
        self.carry_out(self.machine.leave(LeaveGroupRequest(group_id=group, member_id=member_id), version=1))

    def consumer(self, group: str, member_id: str = "m", epoch: int = 0) -> None:
        self.carry_out(
            self.machine.consumer.heartbeat(
                ConsumerGroupHeartbeatRequest(
                    group_id=group,
                    member_id=member_id,
                    member_epoch=epoch,
                    rebalance_timeout_ms=10_000,
                    subscribed_topic_names=[TOPIC] if epoch == 0 else None,
                    topic_partitions=[] if epoch == 0 else None,
                ),
                version=1,
                client_id="c",
                client_host="/h",
            )
        )

    # --- offsets

    def commit(
        self,
        group: str,
        offset: int,
        *,
        member_id: str = "",
        generation: int = -1,
        partitions: int = 1,
        topic: str = TOPIC,
    ) -> None:
        rows = [
            OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            for index in range(partitions)
        ]
        request = OffsetCommitRequest(
            group_id=group,
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=rows)],
        )
        self.carry_out(self.machine.commit(request, 9))

    def offsets(self, group: str) -> dict[tuple[str, int], int]:
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
        found = finish_now(self.machine.offsets.fetch(wanted, require_stable=False))
        return {(t.name, row.partition_index): row.committed_offset for t in found.topics for row in t.partitions}

    def listed(self, *states: str, kinds: tuple[str, ...] = ()) -> list[tuple[str, str, str, str]]:
        return sorted(
            (row.group_id, row.protocol_type, row.group_state, row.group_type)
            for row in finish_now(self.machine.listed(states, kinds))
        )

    def delete(self, group: str) -> None:
        while not self.carry_out(self.machine.delete(group)):
            pass


@pytest.fixture
def world() -> World:
    return World()


def with_all_kinds(world: World) -> None:
    world.commit("simple", 1)
    world.sync("classic", world.join("classic"))
    world.consumer("consumer")


def test_groups_of_every_kind_are_listed_also_after_a_restart(world: World) -> None:
    with_all_kinds(world)
    everything = [
        ("classic", "connect", "Stable", "classic"),
        ("consumer", "consumer", "Stable", "consumer"),
        ("simple", "", "Empty", "classic"),
    ]
    before = world.listed()
    assert [row[0] for row in before] == ["classic", "consumer", "simple"]
    assert before[0] == everything[0] and before[2] == everything[2]
    world.restart()
    assert world.listed() == before


def test_unknown_words_of_a_filter_match_nothing(world: World) -> None:
    with_all_kinds(world)
    assert [row[0] for row in world.listed("stable", "empty", kinds=("classic",))] == ["classic", "simple"]
    assert [row[0] for row in world.listed("empty")] == ["simple"]
    assert [row[0] for row in world.listed(kinds=("consumer",))] == ["consumer"]
    assert world.listed("asleep") == []
    assert world.listed(kinds=("streams",)) == []


def test_a_commit_keeps_the_session_of_a_classic_member_alive(world: World) -> None:
    joined = world.join("g")
    world.sync("g", joined)
    for _ in range(3):
        world.clock.advance(8)
        world.commit("g", 5, member_id=joined.member_id, generation=joined.generation_id)
    assert world.beat("g", joined) is ErrorCode.NONE
    world.clock.advance(11)
    assert world.beat("g", joined) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.offsets("g") == {(TOPIC, 0): 5}


def test_a_member_of_an_old_generation_can_not_commit(world: World) -> None:
    joined = world.join("g")
    world.sync("g", joined)
    with pytest.raises(BrokerError) as raised:
        world.commit("g", 5, member_id=joined.member_id, generation=joined.generation_id - 1)
    assert raised.value.code is ErrorCode.ILLEGAL_GENERATION
    assert world.offsets("g") == {}


@pytest.mark.parametrize("kind", ["simple", "classic", "consumer"])
def test_a_deleted_group_is_gone_with_its_offsets_also_after_a_restart(world: World, kind: str) -> None:
    if kind == "classic":
        world.leave("g", world.join("g").member_id)
    elif kind == "consumer":
        world.consumer("g")
        world.consumer("g", epoch=-1)
    world.commit("g", 5)
    world.commit("other", 5)
    world.delete("g")
    for _ in range(2):
        assert world.offsets("g") == {}
        assert [row[0] for row in world.listed()] == ["other"]
        world.restart()
    with pytest.raises(BrokerError) as raised:
        world.delete("g")
    assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_a_group_with_members_is_not_deleted(world: World, kind: str) -> None:
    if kind == "classic":
        world.join("g")
    else:
        world.consumer("g")
    with pytest.raises(BrokerError) as raised:
        world.delete("g")
    assert raised.value.code is ErrorCode.NON_EMPTY_GROUP


def test_a_group_with_very_many_offsets_goes_in_batches_itself_with_the_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_module, "SLICE_BYTES", 500)
    world.commit("g", 5, partitions=40)
    world.batches.clear()
    world.delete("g")
    assert len(world.batches) > 5
    assert sum(world.batches) == 41
    assert world.listed() == []


def test_old_offsets_and_then_their_groups_are_forgotten(world: World) -> None:
    with_all_kinds(world)
    world.clock.advance(50)
    world.commit("young", 1)
    world.clock.advance(21)
    assert [row[0] for row in world.listed()] == ["young"]  # members have timed out meanwhile
    world.restart()
    assert [row[0] for row in world.listed()] == ["young"]


def test_a_sweep_goes_in_slices_until_everything_is_looked_at(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "SLICE_TOMBSTONES", 7)
    monkeypatch.setattr(machine_module, "SLICE_BYTES", 500)
    for number in range(10):
        world.commit(f"g{number}", 1)
    world.commit("huge", 1, partitions=40)
    world.batches.clear()
    world.clock.advance(75)
    assert world.listed() == []
    assert len(world.batches) > 5
    assert max(world.batches) <= 7


def test_a_sweep_pauses_inside_a_huge_group_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "SLICE_OFFSETS", 10)
    world.commit("huge", 1, partitions=100)
    world.clock.advance(11)
    assert world.pauses == 10
    assert len(world.offsets("huge")) == 100


def test_a_sweep_pauses_between_groups_that_have_no_offsets(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "SLICE_OFFSETS", 2)
    for number in range(6):
        world.consumer(f"g{number}")
    world.clock.advance(11)
    assert world.pauses == 3


def test_what_is_used_again_before_its_tombstone_is_written_is_kept(world: World) -> None:
    world.commit("used", 1, partitions=2)
    world.commit("left", 1, partitions=2)
    world.clock.advance(59)
    late: list[Callable[[], None]] = []
    monitored = world.machine._in_slices
    world.machine._in_slices = lambda what, work, done: monitored(  # type: ignore[assignment]
        what, work, lambda found: late.append(lambda: done(found))
    )
    world.clock.advance(2)
    world.commit("used", 2)
    for each in late:
        each()
    world.clock.advance(0.1)
    assert [row[0] for row in world.listed()] == ["used"]
    assert world.offsets("used") == {(TOPIC, 0): 2}


def test_offsets_of_a_deleted_topic_are_forgotten_in_slices(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "SLICE_TOMBSTONES", 7)
    monkeypatch.setattr(machine_module, "SLICE_BYTES", 500)
    monkeypatch.setattr(offsets_module, "SLICE_OFFSETS", 10)
    for number in range(20):
        world.commit(f"g{number}", 1)
    world.commit("a", 1, partitions=30)
    world.commit("b", 1)
    world.commit("b", 1, topic="kept")
    world.machine.forget_topics([TOPIC])
    world.clock.advance(0.01)
    assert world.offsets("a") == {}
    assert world.offsets("b") == {("kept", 0): 1}
    assert world.pauses >= 5


def test_a_transaction_makes_a_simple_group_and_its_offsets_count_after_the_marker(world: World) -> None:
    producer = Producer(9, 0)
    row = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    request = TxnOffsetCommitRequest(
        group_id="g",
        producer_id=9,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[row])],
    )
    world.carry_out(world.machine.offsets.commit_in_transaction(request, 5))
    world.clock.advance(75)
    assert [row[0] for row in world.listed()] == ["g"]  # a sweep leaves it alone: its transaction is open
    ended = Ended(producer, is_commit=True)
    world.log.append(ended)
    world.machine.replay_end(ended)
    assert world.offsets("g") == {(TOPIC, 0): 3}
    world.restart()
    assert world.offsets("g") == {(TOPIC, 0): 3}


def test_offsets_in_the_first_format_of_all_are_read(world: World) -> None:
    key = LegacyOffsetCommitKey("old", TOPIC, 2)
    record = CoordinatorRecord(key, LegacyOffsetCommitValue(8, "", world.clock.now_ms()))
    world.log.append((*GROUP_CODEC.encode(record), None))
    world.restart()
    assert world.offsets("old") == {(TOPIC, 2): 8}


def test_a_closed_machine_answers_who_waits_and_sets_no_more_timers(world: World) -> None:
    answers: list[JoinGroupResponse] = []
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="connect",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol("range", b"")],
    )
    world.join("g")
    world.carry_out(world.machine.join(request, version=3, client_id="c", client_host="/h", reply=answers.append))
    assert answers == []  # the first member has to join again
    world.machine.close()
    assert [ErrorCode(answer.error_code) for answer in answers] == [ErrorCode.NOT_COORDINATOR]
    assert world.clock.next_timer_s() is None
