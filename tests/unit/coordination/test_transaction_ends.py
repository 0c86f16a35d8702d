"""Partitions are added, transactions end: who may do it, what is answered, what a retry gets, for both protocols."""

from __future__ import annotations

import pytest

from headpond.coordination.home import Producer
from headpond.model import ErrorCode
from unit.coordination.test_transaction_producers import V1_NOTHING, at_epoch
from unit.coordination.transaction_world import P0, P1, P2, World

OK = ErrorCode.NONE


def next_of(producer: Producer) -> Producer:
    return Producer(producer.producer_id, producer.epoch + 1)


class TestAdding:
    def test_the_first_partition_opens_the_transaction_and_others_join_it(self) -> None:
        world = World()
        producer = world.started()
        assert world.add(producer, P1, P0) is OK
        assert world.state() == "Ongoing"
        began_ms = world.machine.describe("orders").transaction_start_time_ms
        assert began_ms == world.clock.now_ms()
        world.clock.advance(1)
        assert world.add(producer, P2) is OK
        answer = world.machine.describe("orders")
        assert answer.transaction_start_time_ms == began_ms
        assert [(topic.topic, topic.partitions) for topic in answer.topics] == [("payments", [0, 1, 2])]

    def test_what_is_in_it_already_is_answered_without_a_record(self) -> None:
        world = World()
        producer = world.started()
        world.add(producer, P0, P1)
        size = len(world.log)
        assert world.add(producer, P1) is OK
        assert len(world.log) == size

    def test_who_may_not(self) -> None:
        world = World()
        producer = world.started()
        assert world.add(producer, name="") is ErrorCode.INVALID_REQUEST
        assert world.add(producer, name="unheard") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert world.add(Producer(1, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert world.add(next_of(producer)) is ErrorCode.PRODUCER_FENCED
        assert world.state() == "Empty"

    def test_while_the_last_one_is_ending_the_next_must_wait(self) -> None:
        world = World()
        producer = world.started()
        world.add(producer)
        world.holds_markers = True
        then = world.end(producer, commit=True)
        assert isinstance(then, Producer)
        assert world.add(then) is ErrorCode.CONCURRENT_TRANSACTIONS
        assert world.add(Producer(1, 0)) is ErrorCode.CONCURRENT_TRANSACTIONS, "looked at before the producer id"
        world.release_markers()
        assert world.add(then) is OK

    def test_until_it_is_committed_nothing_counts_as_added(self) -> None:
        world = World()
        producer = world.started()
        world.add(producer, P0)
        world.holds_commits = True
        world.add(producer, P1)
        assert world.verify(producer, P1) is ErrorCode.TRANSACTION_ABORTABLE
        assert world.verify(producer, P0) is OK
        assert world.add(producer, P1) is ErrorCode.CONCURRENT_TRANSACTIONS
        world.commit()
        assert world.verify(producer, P1) is OK


class TestVerifying:
    def test_only_what_was_added_is_in_the_transaction(self) -> None:
        world = World()
        producer = world.started()
        assert world.verify(producer) is ErrorCode.TRANSACTION_ABORTABLE
        world.add(producer, P0)
        assert world.machine.verify("orders", producer, [P0, P1]) == {P0: OK, P1: ErrorCode.TRANSACTION_ABORTABLE}

    def test_whose_transaction_it_is_matters(self) -> None:
        world = World()
        producer = world.started()
        world.add(producer)
        assert world.verify(producer, name="") is ErrorCode.INVALID_REQUEST
        assert world.verify(producer, name="unheard") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert world.verify(Producer(1, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert world.verify(next_of(producer)) is ErrorCode.PRODUCER_FENCED

    def test_nothing_may_follow_the_end(self) -> None:
        world = World()
        producer = world.started()
        world.add(producer, client_version=0)
        world.holds_markers = True
        world.end(producer, commit=True, client_version=0)
        assert world.verify(producer) is ErrorCode.CONCURRENT_TRANSACTIONS
        world.release_markers()
        assert world.verify(producer) is ErrorCode.TRANSACTION_ABORTABLE


class TestVersion1:
    @pytest.mark.parametrize("commit", [True, False])
    def test_the_end_keeps_the_epoch_and_may_be_said_twice(self, commit: bool) -> None:
        world = World()
        producer = world.started()
        world.add(producer, P0, P1, client_version=0)
        assert world.end(producer, commit=commit, client_version=0) == V1_NOTHING
        assert world.state() == ("CompleteCommit" if commit else "CompleteAbort")
        assert [(tp, marker[:3]) for tp, marker in world.markers] == [
            (tp, (producer.producer_id, 0, commit)) for tp in (P0, P1)
        ]
        assert world.end(producer, commit=commit, client_version=0) == V1_NOTHING
        assert world.end(producer, commit=not commit, client_version=0) is ErrorCode.INVALID_TXN_STATE
        assert len(world.markers) == 2

    @pytest.mark.parametrize("commit", [True, False])
    def test_there_must_be_something_to_end(self, commit: bool) -> None:
        world = World()
        producer = world.started()
        assert world.end(producer, commit=commit, client_version=0) is ErrorCode.INVALID_TXN_STATE

    def test_while_it_is_ending(self) -> None:
        world = World()
        producer = world.started()
        world.add(producer, client_version=0)
        world.holds_markers = True
        world.end(producer, commit=True, client_version=0)
        for commit in (True, False):
            assert world.end(producer, commit=commit, client_version=0) is ErrorCode.CONCURRENT_TRANSACTIONS
        assert world.end(next_of(producer), commit=True, client_version=0) is ErrorCode.PRODUCER_FENCED
        assert world.end(Producer(1, 0), commit=True, client_version=0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def test_who_may_not(self) -> None:
        world = World()
        producer = world.started()
        world.add(producer)
        assert world.end(producer, commit=True, name="", client_version=0) is ErrorCode.INVALID_REQUEST
        assert world.end(producer, commit=True, name="x", client_version=0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert world.end(Producer(1, 0), commit=True, client_version=0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert world.end(next_of(producer), commit=True, client_version=0) is ErrorCode.PRODUCER_FENCED
        assert world.state() == "Ongoing"


class TestVersion2:
    @pytest.mark.parametrize("commit", [True, False])
    def test_the_end_raises_the_epoch_and_the_markers_carry_it(self, commit: bool) -> None:
        world = World()
        producer = world.started()
        world.add(producer)
        assert world.end(producer, commit=commit) == next_of(producer)
        assert [marker[:3] for _, marker in world.markers] == [(producer.producer_id, 1, commit)]
        assert world.add(producer) is ErrorCode.PRODUCER_FENCED, "a late request of the old transaction"
        assert world.add(next_of(producer)) is OK

    @pytest.mark.parametrize(
        ("state", "commit", "is_retry", "expected"),
        [
            ("Empty", False, True, ErrorCode.PRODUCER_FENCED),
            ("Empty", False, False, "raised"),
            ("Empty", True, True, ErrorCode.PRODUCER_FENCED),
            ("Empty", True, False, ErrorCode.INVALID_TXN_STATE),
            ("CompleteAbort", False, True, "confirmed"),
            ("CompleteAbort", False, False, "raised"),
            ("CompleteAbort", True, True, ErrorCode.INVALID_TXN_STATE),
            ("CompleteAbort", True, False, ErrorCode.INVALID_TXN_STATE),
            ("CompleteCommit", False, True, ErrorCode.INVALID_TXN_STATE),
            ("CompleteCommit", False, False, "raised"),
            ("CompleteCommit", True, True, "confirmed"),
            ("CompleteCommit", True, False, ErrorCode.INVALID_TXN_STATE),
        ],
    )
    @pytest.mark.parametrize("restarts", [False, True])
    def test_an_end_without_an_open_transaction(
        self, state: str, commit: bool, is_retry: bool, expected: object, restarts: bool
    ) -> None:
        world = World()
        before = world.started()
        if state == "Empty":
            current = world.started()
        else:
            world.add(before)
            ended = world.end(before, commit=state == "CompleteCommit")
            assert isinstance(ended, Producer)
            current = ended
        if restarts:
            world.restart()
        assert world.state() == state
        answer = world.end(before if is_retry else current, commit=commit)
        if expected == "raised":
            assert answer == next_of(current)
            assert world.state() == "CompleteAbort"
        elif expected == "confirmed":
            assert answer == current
        else:
            assert answer is expected
            assert world.state() == state

    def test_while_it_is_ending_everybody_waits(self) -> None:
        world = World()
        producer = world.started()
        world.add(producer)
        world.holds_markers = True
        world.end(producer, commit=True)
        for who in (producer, next_of(producer), Producer(1, 0)):
            assert world.end(who, commit=True) is ErrorCode.CONCURRENT_TRANSACTIONS
        world.release_markers()
        assert world.end(producer, commit=True) == next_of(producer)

    def test_after_the_last_epoch_the_producer_goes_on_under_a_new_id(self) -> None:
        world = World()
        producer = at_epoch(world, 32_766)
        world.add(producer)
        world.holds_markers = True
        then = world.end(producer, commit=True)
        assert isinstance(then, Producer)
        assert (then.producer_id != producer.producer_id, then.epoch) == (True, 0)
        assert world.add(then) is ErrorCode.CONCURRENT_TRANSACTIONS, "not in effect yet"
        world.restart()
        assert world.sent[0].marker[:2] == (producer.producer_id, 32_767)
        world.release_markers()
        assert world.end(producer, commit=True) == then, "a retry"
        assert world.add(then) is OK

    def test_a_producer_that_did_not_hear_of_the_end_may_go_on_from_before_it(self) -> None:
        world = World()
        producer = world.started()
        world.add(producer)
        world.end(producer, commit=True)
        assert world.init(has=producer) == next_of(producer)

    def test_a_version_1_client_may_follow_a_version_2_client(self) -> None:
        world = World()
        producer = world.started()
        world.add(producer)
        then = world.end(producer, commit=True)
        assert isinstance(then, Producer)
        world.add(then, client_version=0)
        assert world.end(then, commit=True, client_version=0) == V1_NOTHING
        assert world.markers[-1][1].transaction_version == 0

    @pytest.mark.parametrize("commit", [True, False])
    @pytest.mark.parametrize("restarts", [False, True])
    def test_a_fenced_producer_gets_no_share_in_what_a_version_1_client_has_ended(
        self, commit: bool, restarts: bool
    ) -> None:
        """That end did not raise the epoch: who names the one before it is no retry, and would go on with the epoch of
        the producer that fenced it (found by simulation)."""
        world = World()
        zombie = world.started()
        other = world.started()
        world.add(other, client_version=0)
        world.end(other, commit=commit, client_version=0)
        if restarts:
            world.restart()
        for what in (True, False):
            assert world.end(zombie, commit=what) is ErrorCode.PRODUCER_FENCED
        assert world.add(other, client_version=0) is OK


def test_an_end_that_is_not_committed_is_not_acted_upon() -> None:
    world = World()
    producer = world.started()
    world.add(producer)
    world.holds_commits = True
    world.end(producer, commit=True)
    assert world.markers == []
    assert world.state() == "Ongoing"
    world.commit()
    assert world.state() == "CompleteCommit"


def test_an_end_whose_commit_was_not_seen_is_written_again_until_it_is() -> None:
    world = World()
    producer = world.started()
    world.add(producer)
    world.holds_commits = True
    world.end(producer, commit=True)
    world.fail_commits()
    assert world.markers == []
    world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.clock.advance(3)
    assert world.markers == []
    world.append_error, world.holds_commits = None, False
    world.clock.advance(2)
    assert world.state() == "CompleteCommit"
    assert [(tp, marker.is_commit) for tp, marker in world.markers] == [(P0, True)]
