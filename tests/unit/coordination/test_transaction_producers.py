"""InitProducerId with a transactional id: who gets which id and epoch, and who is fenced (KIP-360)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from headpond.coordination.home import Producer
from headpond.model import ErrorCode
from headpond.protocol.schema.transaction_records import TransactionLogValue
from unit.coordination.transaction_world import ID, P0, World

V1_NOTHING = Producer(-1, -1)


def at_epoch(world: World, epoch: int) -> Producer:
    """A producer that was initialized so often, without doing it."""
    producer = world.started()
    old = world.machine._book.current(ID)
    assert old is not None
    world.write(lambda machine: machine._book.step(replace(old, producer_epoch=epoch), None))
    return Producer(producer.producer_id, epoch)


def test_a_new_id_starts_at_epoch_0_and_each_start_raises_it() -> None:
    world = World()
    first = world.started()
    assert first.epoch == 0
    assert world.init() == Producer(first.producer_id, 1)
    assert world.started("others").producer_id != first.producer_id


def test_an_empty_id_is_an_invalid_request() -> None:
    assert World().init("") is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_time_out_beyond_the_limit_is_refused(timeout_ms: int) -> None:
    world = World()
    assert world.init(timeout_ms=timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert world.state() == "TRANSACTIONAL_ID_NOT_FOUND"
    assert isinstance(world.init(timeout_ms=900_000), Producer)


def test_without_a_producer_id_at_hand_clients_are_asked_to_come_back() -> None:
    world = World()
    world.has_producer_ids = False
    assert world.init() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.has_producer_ids = True
    assert isinstance(world.init(), Producer)


def test_a_producer_that_names_its_epoch_goes_on_with_the_next_one() -> None:
    world = World()
    first = world.started()
    assert world.init(has=first) == Producer(first.producer_id, 1)


def test_a_retry_gets_the_same_epoch_again() -> None:
    world = World()
    first = world.started()
    second = world.init(has=first)
    assert world.init(has=first) == second


def test_a_restart_forgets_how_to_tell_a_retry_as_kafkas_does() -> None:
    world = World()
    first = world.started()
    world.init(has=first)
    world.restart()
    assert world.init(has=first) is ErrorCode.PRODUCER_FENCED


def test_once_another_producer_took_the_id_the_old_one_is_fenced() -> None:
    world = World()
    first = world.started()
    world.started()
    assert world.init(has=first) is ErrorCode.PRODUCER_FENCED


def test_a_producer_id_that_never_had_this_transactional_id_is_fenced() -> None:
    world = World()
    first = world.started()
    assert world.init(has=Producer(first.producer_id + 1, 0)) is ErrorCode.PRODUCER_FENCED


def test_a_producer_whose_id_was_forgotten_starts_anew() -> None:
    world = World()
    answer = world.init(has=Producer(77, 3))
    assert isinstance(answer, Producer)
    assert (answer.producer_id != 77, answer.epoch) == (True, 0)


def test_an_open_transaction_is_aborted_first_and_its_producer_fenced() -> None:
    world = World()
    old = world.started()
    world.add(old)
    world.holds_markers = True
    assert world.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.state() == "PrepareAbort"
    assert world.init() is ErrorCode.CONCURRENT_TRANSACTIONS, "until the markers are written"
    world.release_markers()
    assert world.state() == "CompleteAbort"
    assert [(tp, marker.is_commit) for tp, marker in world.markers] == [(P0, False)]
    new = world.init()
    assert new == Producer(old.producer_id, 2)
    assert world.add(old) is ErrorCode.PRODUCER_FENCED
    assert world.end(old, commit=True) is ErrorCode.PRODUCER_FENCED


def test_with_version_1_the_fence_itself_raises_the_epoch() -> None:
    world = World(transaction_version=1)
    old = world.started()
    world.add(old, client_version=0)
    assert world.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.markers[0][1].producer_epoch == 1
    assert world.init() == Producer(old.producer_id, 2)


def test_while_a_record_is_not_committed_the_id_is_busy() -> None:
    world = World()
    world.holds_commits = True
    world.init()
    assert world.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.state() == "TRANSACTIONAL_ID_NOT_FOUND", "what is told is what is committed"
    world.commit()
    assert world.state() == "Empty"
    assert isinstance(world.init(), Producer)


def test_what_can_not_be_appended_changes_nothing() -> None:
    world = World()
    first = world.started()
    world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.init() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.append_error = None
    assert world.init() == Producer(first.producer_id, 1)


class TestExhaustedEpochs:
    def test_the_last_epoch_is_followed_by_a_new_producer_id(self) -> None:
        world = World()
        old = at_epoch(world, 32_765)
        last = world.init()
        assert last == Producer(old.producer_id, 32_766)
        new = world.init()
        assert isinstance(new, Producer)
        assert (new.producer_id != old.producer_id, new.epoch) == (True, 0)

    def test_the_producer_that_did_not_hear_of_its_new_id_is_told_again(self) -> None:
        world = World()
        old = at_epoch(world, 32_766)
        new = world.init(has=old)
        assert isinstance(new, Producer)
        assert new.producer_id != old.producer_id
        assert world.init(has=old) == new

    def test_but_not_when_another_one_took_it(self) -> None:
        world = World()
        old = at_epoch(world, 32_766)
        world.started()
        assert world.init(has=old) is ErrorCode.PRODUCER_FENCED

    def test_a_retry_at_the_last_epoch_is_answered_and_a_zombie_fenced(self) -> None:
        world = World()
        old = at_epoch(world, 32_765)
        last = world.init(has=old)
        assert world.init(has=old) == last == Producer(old.producer_id, 32_766)
        assert world.init(has=Producer(old.producer_id, 7)) is ErrorCode.PRODUCER_FENCED

    def test_fencing_an_open_transaction_at_the_last_epoch_uses_the_one_that_is_kept_for_it(self) -> None:
        for version in (1, 2):
            world = World(transaction_version=version)
            old = at_epoch(world, 32_766)
            world.add(old, client_version=version)
            assert world.init() is ErrorCode.CONCURRENT_TRANSACTIONS
            assert world.markers[0][1].producer_epoch == 32_767
            new = world.init()
            assert isinstance(new, Producer)
            assert new.producer_id != old.producer_id


@pytest.mark.parametrize(("transaction_version", "value_version"), [(0, 0), (1, 1), (2, 1)])
def test_the_feature_decides_the_version_of_the_stored_value(transaction_version: int, value_version: int) -> None:
    world = World(transaction_version=transaction_version)
    producer = world.started()
    world.add(producer, client_version=0)
    world.end(producer, commit=True, client_version=0)
    assert {value[:2] for _, value in world.log if value is not None} == {value_version.to_bytes(2, "big")}
    world.restart()
    assert world.state() == "CompleteCommit"


def test_the_stored_record_is_kafkas() -> None:
    world = World()
    producer = world.started()
    world.add(producer)
    record = world._codec.decode(*world.log[-1])
    assert record is not None
    value = record.value
    assert isinstance(value, TransactionLogValue)
    now_ms = world.clock.now_ms()
    assert value == TransactionLogValue(
        producer_id=producer.producer_id,
        previous_producer_id=producer.producer_id,
        producer_epoch=0,
        transaction_timeout_ms=60_000,
        transaction_status=1,
        transaction_partitions=[TransactionLogValue.PartitionsSchema(topic="payments", partition_ids=[0])],
        transaction_last_update_timestamp_ms=now_ms,
        transaction_start_timestamp_ms=now_ms,
        client_transaction_version=2,
    )
