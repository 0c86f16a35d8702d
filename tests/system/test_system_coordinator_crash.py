"""kill -9 in the middle of rebalances: nobody is left behind, nobody has what another one holds, offsets are there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headpond.protocol.schema.describe_groups import DescribeGroupsRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.heartbeat import HeartbeatRequest
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from headpond.protocol.schema.sync_group import SyncGroupRequest
from support.broker import BrokerProcess
from support.proxy import AnswerEater
from support.verbs import Topic, create_topic
from support.waiting import eventually
from support.wire import Wire

OK, LOADING, NOT_COORDINATOR = 0, 14, 16
ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 22, 25, 27
MEMBER_ID_REQUIRED = 79
GROUP = "readers"
LONG_MS = 60_000


@pytest.fixture
def broker(make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    return make_broker(
        settings={
            "group.initial.rebalance.delay.ms": 0,
            "group.consumer.assignment.interval.ms": 0,
            "offsets.topic.num.partitions": 1,
        }
    ).start()


@pytest.fixture
def topic(broker: BrokerProcess) -> Topic:
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "letters", partitions=4)
        eventually(
            lambda: wire.call(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4).coordinators[0].error_code == 0
        )
        loaded(wire)
    return topic


def loaded(wire: Wire) -> None:
    """The coordinator has read its log."""
    eventually(lambda: fetched(wire).error_code not in (LOADING, NOT_COORDINATOR))


def killed_and_started(broker: BrokerProcess) -> Wire:
    broker.restart(kill=True)
    wire = Wire(broker.bootstrap_servers)
    loaded(wire)
    return wire


class Classic:
    """A member of a classic group, step by step."""

    def __init__(self, bootstrap: str) -> None:
        self.wire = Wire(bootstrap)
        self.member_id, self.generation, self.leader = "", -1, ""
        self.members: list[str] = []

    def send_join(self) -> None:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=LONG_MS // 2,
            rebalance_timeout_ms=LONG_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol("range", b"")],
        )
        self.wire.send(request, 9)

    def receive_join(self) -> int:
        answer = self.wire.receive()[1]
        if answer.error_code in (OK, MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
        if answer.error_code == OK:
            self.generation, self.leader = answer.generation_id, answer.leader
            self.members = [each.member_id for each in answer.members]
        code: int = answer.error_code
        return code

    def introduce(self) -> None:
        """It gets its id, which it joins with."""
        self.send_join()
        assert self.receive_join() == MEMBER_ID_REQUIRED

    def send_sync(self) -> None:
        """The leader gives everybody its own id as the assignment."""
        assignments = [
            SyncGroupRequest.SyncGroupRequestAssignment(member, b"for " + member.encode()) for member in self.members
        ]
        request = SyncGroupRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.member_id, assignments=assignments
        )
        self.wire.send(request, 3)

    def receive_sync(self) -> tuple[int, bytes]:
        answer = self.wire.receive()[1]
        return answer.error_code, answer.assignment

    def beat(self, wire: Wire | None = None) -> int:
        request = HeartbeatRequest(group_id=GROUP, generation_id=self.generation, member_id=self.member_id)
        code: int = (wire or self.wire).call(request, 4).error_code
        return code

    def commit(self, topic: Topic, offset: int) -> int:
        return commit(self.wire, topic, offset, self.generation, self.member_id)

    def reconnect(self, bootstrap: str) -> None:
        self.wire.close()
        self.wire = Wire(bootstrap)

    @property
    def has_its_own(self) -> tuple[int, bytes]:
        return OK, b"for " + self.member_id.encode()


def commit(wire: Wire, topic: Topic, offset: int, epoch: int = -1, member_id: str = "") -> int:
    row = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=topic.name, partitions=[row])],
    )
    code: int = wire.call(request, 9).topics[0].partitions[0].error_code
    return code


def fetched(wire: Wire) -> Any:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name="letters", partition_indexes=[0])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])
    return wire.call(OffsetFetchRequest(groups=[group]), 9).groups[0]


def committed(wire: Wire) -> int:
    offset: int = fetched(wire).topics[0].partitions[0].committed_offset
    return offset


def alone(broker: BrokerProcess, topic: Topic) -> Classic:
    """A member that is the whole group, and has committed."""
    member = Classic(broker.bootstrap_servers)
    member.introduce()
    member.send_join()
    assert member.receive_join() == OK
    member.send_sync()
    assert member.receive_sync() == member.has_its_own
    assert member.commit(topic, 7) == OK
    return member


def rebalance(*members: Classic) -> None:
    """All join, all sync, and each has what the leader gave it."""
    for member in members:
        member.send_join()
    assert [member.receive_join() for member in members] == [OK] * len(members)
    assert len({member.generation for member in members}) == 1
    for member in members:
        member.send_sync()
    assert [member.receive_sync() for member in members] == [member.has_its_own for member in members]


# --- classic groups


def test_killed_while_a_join_is_parked_the_old_generation_goes_on_and_the_new_member_joins_again(
    broker: BrokerProcess, topic: Topic
) -> None:
    one, two = alone(broker, topic), Classic(broker.bootstrap_servers)
    two.introduce()
    two.send_join()
    eventually(lambda: one.beat() == REBALANCE_IN_PROGRESS)
    two.wire.assert_silent()  # it waits for the other one
    with killed_and_started(broker) as wire:
        assert committed(wire) == 7
    one.reconnect(broker.bootstrap_servers)
    assert one.beat() == OK
    assert one.commit(topic, 8) == OK
    two.reconnect(broker.bootstrap_servers)
    two.send_join()
    assert two.receive_join() == UNKNOWN_MEMBER_ID  # it was promised nothing yet
    two.member_id = ""
    two.introduce()
    generation = one.generation
    rebalance(two, one)
    assert one.generation == generation + 1
    assert one.commit(topic, 9) == two.commit(topic, 9) == OK


def test_killed_while_a_sync_is_parked_nobody_is_in_the_generation_that_was_never_handed_out(
    broker: BrokerProcess, topic: Topic
) -> None:
    one, two = alone(broker, topic), Classic(broker.bootstrap_servers)
    two.introduce()
    for member in (two, one):
        member.send_join()
    assert (one.receive_join(), two.receive_join()) == (OK, OK)
    assert one.leader == one.member_id
    two.send_sync()
    two.wire.assert_silent()  # the leader has not spoken
    with killed_and_started(broker) as wire:
        assert committed(wire) == 7
    one.reconnect(broker.bootstrap_servers)
    two.reconnect(broker.bootstrap_servers)
    assert one.beat() == ILLEGAL_GENERATION
    assert one.commit(topic, 8) == ILLEGAL_GENERATION
    assert two.beat() == UNKNOWN_MEMBER_ID
    assert two.commit(topic, 8) == UNKNOWN_MEMBER_ID
    two.member_id = ""
    two.introduce()
    rebalance(one, two)
    assert one.commit(topic, 9) == OK


def test_killed_after_the_leader_has_synced_and_before_anybody_heard_of_it_the_assignment_is_there(
    broker: BrokerProcess, topic: Topic
) -> None:
    eater = AnswerEater()
    eater.upstream_port = broker.port
    one, two = alone(broker, topic), Classic(broker.bootstrap_servers)
    two.introduce()
    for member in (two, one):
        member.send_join()
    assert (one.receive_join(), two.receive_join()) == (OK, OK)
    one.reconnect(f"127.0.0.1:{eater.port}")
    eater.eating = True
    one.send_sync()
    with Wire(broker.bootstrap_servers) as wire:
        describe = DescribeGroupsRequest(groups=[GROUP])
        eventually(lambda: wire.call(describe, 5).groups[0].group_state == "Stable")  # the assignment is stored
    with killed_and_started(broker) as wire:
        assert (one.beat(wire), two.beat(wire), committed(wire)) == (OK, OK, 7)
    eater.close()
    for member in (two, one):
        member.reconnect(broker.bootstrap_servers)
        member.send_sync()
        assert member.receive_sync() == member.has_its_own
        assert member.commit(topic, 8) == OK


# --- consumer groups


def beat(wire: Wire, topic: Topic, member_id: str, epoch: int, owned: list[int]) -> Any:
    """With everything that a member can say: the answer holds its assignment."""
    parts = [ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic.id, partitions=owned)] if owned else []
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=LONG_MS,
        subscribed_topic_names=[topic.name],
        topic_partitions=parts,
    )
    answer = wire.call(request, 1)
    assert answer.error_code == OK, (answer.error_code, answer.error_message)
    return answer


def given(answer: Any) -> list[int]:
    return [partition for part in answer.assignment.topic_partitions for partition in part.partitions]


def test_killed_while_partitions_are_given_up_they_are_handed_on_only_after_their_owner_says_so(
    broker: BrokerProcess, topic: Topic
) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        first = beat(wire, topic, "one", 0, [])
        assert given(first) == [0, 1, 2, 3]
        assert commit(wire, topic, 7, first.member_epoch, "one") == OK
        second = beat(wire, topic, "two", 0, [])
        assert given(second) == []
        told = beat(wire, topic, "one", first.member_epoch, [0, 1, 2, 3])
        kept = given(told)
        assert len(kept) == 2
    with killed_and_started(broker) as wire:
        assert committed(wire) == 7
        assert given(beat(wire, topic, "two", second.member_epoch, [])) == []
        assert given(beat(wire, topic, "one", told.member_epoch, [0, 1, 2, 3])) == kept
        assert commit(wire, topic, 8, told.member_epoch, "one") == OK
        assert given(beat(wire, topic, "two", second.member_epoch, [])) == []
    with killed_and_started(broker) as wire:
        done = beat(wire, topic, "one", told.member_epoch, kept)
        assert given(done) == kept
    with killed_and_started(broker) as wire:
        received = given(beat(wire, topic, "two", second.member_epoch, []))
        assert sorted(kept + received) == [0, 1, 2, 3]
        assert given(beat(wire, topic, "one", done.member_epoch, kept)) == kept


# --- loading


def test_while_the_coordinator_loads_nobody_is_told_that_there_is_nothing(broker: BrokerProcess) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "letters", partitions=500)
        wire.call(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4)
        loaded(wire)
        for offset in range(1, 101):
            rows = [
                OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=at, committed_offset=offset)
                for at in range(500)
            ]
            entry = OffsetCommitRequest.OffsetCommitRequestTopic(name=topic.name, partitions=rows)
            answer = wire.call(OffsetCommitRequest(group_id=GROUP, topics=[entry]), 9)
            assert {row.error_code for row in answer.topics[0].partitions} == {OK}
    for _ in range(2):
        broker.restart(kill=True)
        answers: list[Any] = []

        def ask(answers: list[Any] = answers) -> bool:
            with Wire(broker.bootstrap_servers) as wire:
                answers.append(fetched(wire))
                return bool(answers[-1].error_code == OK)

        eventually(ask)
        assert {answer.error_code for answer in answers} <= {OK, LOADING, NOT_COORDINATOR}
        assert answers[-1].topics[0].partitions[0].committed_offset == 100


def test_a_polite_stop_in_the_middle_of_commits_answers_each_with_its_true_outcome(
    broker: BrokerProcess, topic: Topic
) -> None:
    """OK: it is there. NOT_COORDINATOR, or no answer: it may be."""
    acknowledged = [0]

    def commit_on() -> None:
        with Wire(broker.bootstrap_servers) as wire:
            try:
                while commit(wire, topic, acknowledged[0] + 1) == OK:
                    acknowledged[0] += 1
            except Exception:
                return

    for _ in range(3):
        before = acknowledged[0]
        thread = threading.Thread(target=commit_on)
        thread.start()
        eventually(lambda before=before: acknowledged[0] > before + 50)  # type: ignore[misc]
        broker.restart()
        thread.join()
        with Wire(broker.bootstrap_servers) as wire:
            loaded(wire)
            assert committed(wire) in (acknowledged[0], acknowledged[0] + 1)
            acknowledged[0] = committed(wire)
