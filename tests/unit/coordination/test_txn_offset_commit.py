"""TxnOffsetCommit in groups that live: who may (KIP-447), what is pending, and what time and markers do to it."""

from __future__ import annotations

import pytest

from headpond.coordination.home import Ended, Producer
from headpond.coordination.slices import finish_now
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from headpond.protocol.schema.txn_offset_commit import TxnOffsetCommitRequest
from unit.coordination.test_group_machine import SETTINGS, TOPIC, World

GROUP = "readers"
ONE, TWO = Producer(1, 0), Producer(2, 0)
RETENTION_S = SETTINGS.retention_ms / 1_000


class Transactions(World):
    def commit_in(
        self,
        producer: Producer,
        offset: int = 5,
        *,
        member_id: str = "",
        instance: str | None = None,
        generation: int = -1,
        version: int = 5,
    ) -> ErrorCode:
        """What is answered for the one partition."""
        row = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            group_id=GROUP,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            member_id=member_id,
            group_instance_id=instance,
            generation_id=generation,
            topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[row])],
        )
        try:
            answer = self.carry_out(self.machine.offsets.commit_in_transaction(request, version))
        except BrokerError as refused:
            return refused.code
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def end(self, producer: Producer, *, commit: bool) -> None:
        ended = Ended(producer, is_commit=commit)
        self.log.append(ended)
        self.machine.replay_end(ended)

    def member(self) -> tuple[str, int]:
        """A classic member, in a group that is stable; its generation."""
        joined = self.join(GROUP)
        self.sync(GROUP, joined)
        return joined.member_id, joined.generation_id

    def is_unstable(self) -> bool:
        topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])
        found = finish_now(self.machine.offsets.fetch(wanted, require_stable=True))
        return bool(found.topics[0].partitions[0].error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT)

    @property
    def offset(self) -> int | None:
        return self.offsets(GROUP).get((TOPIC, 0))


@pytest.fixture
def world() -> Transactions:
    return Transactions()


# --- who may (KIP-447)


def test_a_member_commits_in_its_generation(world: Transactions) -> None:
    member_id, generation = world.member()
    assert world.commit_in(ONE, member_id=member_id, generation=generation) is ErrorCode.NONE
    assert world.commit_in(ONE, member_id=member_id, generation=generation - 1) is ErrorCode.ILLEGAL_GENERATION
    assert world.commit_in(ONE, member_id=member_id, generation=generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert world.commit_in(ONE, member_id=member_id) is ErrorCode.ILLEGAL_GENERATION


def test_who_is_not_a_member_is_unknown(world: Transactions) -> None:
    _, generation = world.member()
    assert world.commit_in(ONE, member_id="stranger", generation=generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit_in(ONE, generation=generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit_in(ONE, instance="i", generation=generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert not world.is_unstable()


def test_a_producer_that_names_nobody_is_not_asked_who_it_is(world: Transactions) -> None:
    """Clients from before KIP-447 tell only the group: they are fenced by their transactional id."""
    world.member()
    assert world.commit_in(ONE) is ErrorCode.NONE
    world.end(ONE, commit=True)
    assert world.offset == 5


def test_a_member_that_left_is_fenced_though_its_transaction_is_open(world: Transactions) -> None:
    member_id, generation = world.member()
    assert world.commit_in(ONE, member_id=member_id, generation=generation) is ErrorCode.NONE
    world.leave(GROUP, member_id)
    assert world.commit_in(ONE, 6, member_id=member_id, generation=generation) is ErrorCode.UNKNOWN_MEMBER_ID
    world.end(ONE, commit=True)
    assert world.offset == 5


def test_a_member_whose_session_ran_out_is_fenced(world: Transactions) -> None:
    member_id, generation = world.member()
    world.clock.advance(11)
    assert world.commit_in(ONE, member_id=member_id, generation=generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_in_a_transaction_does_not_keep_a_session_alive(world: Transactions) -> None:
    member_id, generation = world.member()
    for _ in range(3):
        world.clock.advance(4)
        answer = world.commit_in(ONE, member_id=member_id, generation=generation)
    assert answer is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_generation_without_a_group_is_illegal(world: Transactions) -> None:
    assert world.commit_in(ONE, generation=1) is ErrorCode.ILLEGAL_GENERATION
    assert world.commit_in(ONE, member_id="m") is ErrorCode.NONE  # as long as it names no generation
    assert world.is_unstable()


def test_a_member_of_a_consumer_group_commits_in_its_epoch(world: Transactions) -> None:
    world.consumer(GROUP)
    described = world.machine.consumer.describe(GROUP)
    epoch = described.members[0].member_epoch
    assert world.commit_in(ONE, member_id="m", generation=epoch) is ErrorCode.NONE
    assert world.commit_in(ONE, member_id="m", generation=epoch + 1) is ErrorCode.ILLEGAL_GENERATION
    assert world.commit_in(ONE, member_id="stranger", generation=epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit_in(ONE) is ErrorCode.NONE


# --- pending


def test_the_marker_may_have_a_later_epoch_than_the_commit(world: Transactions) -> None:
    """Of transaction version 2: the end of a transaction raises the epoch, and so does its marker."""
    world.commit_in(ONE)
    world.end(Producer(ONE.producer_id, 1), commit=True)
    assert world.offset == 5
    assert not world.is_unstable()


def test_a_restart_finds_pending_offsets_pending(world: Transactions) -> None:
    world.commit_in(ONE)
    world.restart()
    assert world.is_unstable()
    assert world.offset is None
    world.end(ONE, commit=True)
    assert world.offset == 5


def test_of_two_commits_in_one_transaction_the_last_counts(world: Transactions) -> None:
    world.commit_in(ONE, 5)
    world.commit_in(ONE, 7)
    world.end(ONE, commit=True)
    assert world.offset == 7


def test_the_next_transaction_of_a_producer_owes_nothing_to_an_aborted_one(world: Transactions) -> None:
    world.commit_in(ONE, 5)
    world.end(ONE, commit=False)
    assert not world.is_unstable()
    world.end(ONE, commit=True)
    assert world.offset is None


def test_a_group_that_is_deleted_takes_pending_offsets_along(world: Transactions) -> None:
    world.commit_in(ONE)
    world.delete(GROUP)
    world.end(ONE, commit=True)
    assert world.offset is None
    world.restart()
    assert world.offset is None


# --- time


def test_pending_offsets_do_not_expire_and_hold_the_group(world: Transactions) -> None:
    world.commit_in(ONE)
    world.clock.advance(3 * RETENTION_S)
    assert [row[0] for row in world.listed()] == [GROUP]
    world.end(ONE, commit=True)
    assert world.offset == 5


def test_what_a_transaction_committed_expires_by_when_it_was_written(world: Transactions) -> None:
    world.commit_in(ONE)
    world.clock.advance(RETENTION_S - 5)
    world.end(ONE, commit=True)
    assert world.offset == 5
    world.clock.advance(20)
    assert world.offset is None
    assert world.listed() == []


def test_a_group_whose_transaction_was_aborted_is_forgotten(world: Transactions) -> None:
    world.commit_in(ONE)
    world.end(ONE, commit=False)
    world.clock.advance(20)
    assert world.listed() == []
