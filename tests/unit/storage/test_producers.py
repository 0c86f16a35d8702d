"""Idempotent producers: a retry is never stored twice, a gap is never stored, a fenced producer never writes.

The answers were compared with those of a real Kafka 4.3, request by request.
"""

from __future__ import annotations

import pytest

from headpond.model import BrokerError, ErrorCode, TopicPartition
from headpond.protocol.records.control import EndTxnMarker, build_end_txn_marker
from headpond.protocol.records.header import TRANSACTIONAL_BIT, BatchHeader, read_header
from headpond.storage.producers import producers
from headpond.storage.producers.producers import ProducerStates
from headpond.storage.producers.snapshot import decode_snapshot
from headpond.storage.producers.state import CompletedTxn, StoredBatch
from support.other_side import stamp

TP = TopicPartition("orders", 0)
TOP = 2**31 - 1
DAY = 86_400_000


def batch(
    sequence: int, count: int = 1, *, pid: int = 7, epoch: int = 0, timestamp: int = 50, transactional: bool = False
) -> BatchHeader:
    return BatchHeader(
        base_offset=0,
        batch_length=100,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=TRANSACTIONAL_BIT if transactional else 0,
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=pid,
        producer_epoch=epoch,
        base_sequence=sequence,
        count=count,
    )


def append(states: ProducerStates, header: BatchHeader, now_ms: int = 0) -> StoredBatch | None:
    """What a leader does with a batch."""
    duplicate = states.check(header)
    if duplicate is None:
        states.update(header, states.end_offset, now_ms)
    return duplicate


def marker(states: ProducerStates, *, pid: int = 7, epoch: int = 0, is_abort: bool = False) -> CompletedTxn | None:
    data = build_end_txn_marker(
        producer_id=pid, producer_epoch=epoch, is_abort=is_abort, coordinator_epoch=2, timestamp=60
    )
    stamp(data, 0, states.end_offset, 0)
    return states.replay(data, read_header(data), now_ms=0)


def refused(states: ProducerStates, header: BatchHeader) -> BrokerError:
    with pytest.raises(BrokerError) as caught:
        states.check(header)
    return caught.value


@pytest.fixture
def states() -> ProducerStates:
    return ProducerStates(TP)


def test_batches_without_a_producer_only_move_the_end(states: ProducerStates) -> None:
    assert append(states, batch(-1, 3, pid=-1, epoch=-1)) is None
    assert (states.end_offset, len(states)) == (3, 0)


def test_sequences_follow_each_other(states: ProducerStates) -> None:
    append(states, batch(0, 3))
    append(states, batch(3, 2))
    error = refused(states, batch(6))
    assert error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error.message == (
        "Out of order sequence number for producer 7 at offset 5 in partition orders-0: "
        "6 (incoming seq. number), 4 (current end sequence number)"
    )
    assert states.end_offset == 5


def test_unknown_producer_may_start_at_any_sequence(states: ProducerStates) -> None:
    assert append(states, batch(41)) is None
    assert append(states, batch(42)) is None


def test_each_of_the_last_five_batches_is_known_as_a_duplicate(states: ProducerStates) -> None:
    for sequence in range(0, 12, 2):
        append(states, batch(sequence, 2, timestamp=100 + sequence))
    for sequence in range(2, 12, 2):
        assert append(states, batch(sequence, 2)) == StoredBatch(
            sequence, sequence + 1, sequence, sequence + 1, 100 + sequence
        )
    assert refused(states, batch(0, 2)).code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.end_offset == 12


def test_batch_with_another_range_is_no_duplicate(states: ProducerStates) -> None:
    append(states, batch(0, 3))
    for header in (batch(0, 2), batch(1, 2), batch(0, 4)):
        assert refused(states, header).code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_run_from_the_largest_number_to_zero(states: ProducerStates) -> None:
    append(states, batch(TOP - 1, 2))
    append(states, batch(0, 2))
    assert append(states, batch(TOP - 1, 2)) is not None
    fresh = ProducerStates(TP)
    append(fresh, batch(TOP, 3))  # TOP, 0, 1
    assert append(fresh, batch(TOP, 3)) is not None
    assert append(fresh, batch(2)) is None


def test_older_epoch_is_fenced(states: ProducerStates) -> None:
    append(states, batch(0, epoch=3))
    error = refused(states, batch(1, epoch=2))
    assert error.code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert error.message == (
        "Epoch of producer 7 at offset 1 in orders-0 is 2, which is smaller than the last seen epoch 3"
    )


def test_newer_epoch_starts_at_sequence_zero(states: ProducerStates) -> None:
    append(states, batch(0, 5))
    error = refused(states, batch(5, epoch=1))
    assert error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error.message == (
        "Invalid sequence number for new epoch of producer 7at offset 5 in partition orders-0: "
        "1 (request epoch), 5 (seq. number), 0 (current producer epoch)"
    )
    append(states, batch(0, 5, epoch=1))
    assert states.end_offset == 10, "the same range in another epoch is no duplicate"


def test_producers_do_not_disturb_each_other(states: ProducerStates) -> None:
    append(states, batch(0, pid=1))
    append(states, batch(0, pid=2))
    append(states, batch(1, pid=1))
    assert append(states, batch(0, pid=2)) == StoredBatch(0, 0, 1, 1, 50)


def test_follower_believes_the_leader(states: ProducerStates) -> None:
    states.update(batch(0, epoch=5), 0, now_ms=0)
    states.update(batch(17, epoch=4), 1, now_ms=0)
    known = states.get(7)
    assert known is not None
    assert (known.epoch, known.last_sequence, len(known.batches)) == (4, 17, 1)


# --- forgetting -------------------------------------------------------------------------------------------------------


def test_producer_is_forgotten_after_a_day_without_appends(states: ProducerStates) -> None:
    append(states, batch(0, pid=1), now_ms=0)
    append(states, batch(0, pid=2), now_ms=1_000)
    assert states.expire(DAY - 1) == 0
    assert states.expire(DAY) == 1
    assert states.get(1) is None
    assert states.get(2) is not None


def test_producer_at_work_is_not_forgotten_whatever_its_timestamps_say(states: ProducerStates) -> None:
    append(states, batch(0, pid=1, timestamp=0), now_ms=10 * DAY)
    append(states, batch(0, pid=2, timestamp=0), now_ms=10 * DAY)
    append(states, batch(1, pid=1, timestamp=0), now_ms=11 * DAY - 1)
    assert states.expire(11 * DAY) == 1
    assert append(states, batch(0, pid=1)) is not None


def test_producer_in_a_transaction_is_not_forgotten(states: ProducerStates) -> None:
    append(states, batch(0, pid=1, transactional=True))
    append(states, batch(0, pid=2))
    assert states.expire(5 * DAY) == 1
    assert states.get(1) is not None


def test_number_of_producers_is_bounded_and_the_longest_idle_goes(
    states: ProducerStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producers, "PRODUCERS_MAX", 3)
    append(states, batch(0, pid=1, transactional=True), now_ms=0)
    append(states, batch(0, pid=2), now_ms=0)
    append(states, batch(0, pid=3), now_ms=0)
    append(states, batch(1, pid=2), now_ms=5_000)
    append(states, batch(0, pid=4), now_ms=6_000)
    assert [known.producer_id for known in states.states()] == [1, 2, 4]


def test_snapshot_with_too_many_producers_keeps_the_newest(
    states: ProducerStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(states, batch(0, pid=9, transactional=True))
    for pid in range(5):
        append(states, batch(0, pid=pid))
    monkeypatch.setattr(producers, "PRODUCERS_MAX", 3)
    again = ProducerStates(TP)
    again.load(states.snapshot(), states.end_offset, now_ms=0)
    assert [known.producer_id for known in again.states()] == [3, 4, 9]
    assert again.first_undecided_offset == 0


def test_deleting_records_does_not_forget_their_producer(states: ProducerStates) -> None:
    append(states, batch(0, 5))
    states.on_log_start(5)
    assert append(states, batch(0, 5)) == StoredBatch(0, 4, 0, 4, 50)
    states.on_log_start(20)
    assert states.end_offset == 20


# --- restart ----------------------------------------------------------------------------------------------------------


def test_reload_knows_the_newest_batch_of_each_producer(states: ProducerStates) -> None:
    for sequence in range(3):
        append(states, batch(sequence))
    again = ProducerStates(TP)
    again.load(states.snapshot(), states.end_offset, now_ms=0)
    assert again.end_offset == 3
    assert append(again, batch(2)) == StoredBatch(2, 2, 2, 2, 50)
    assert refused(again, batch(1)).code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(again, batch(3)) is None


def test_reload_counts_back_over_the_end_of_the_sequences(states: ProducerStates) -> None:
    append(states, batch(TOP, 3))
    again = ProducerStates(TP)
    again.load(states.snapshot(), 3, now_ms=0)
    assert append(again, batch(TOP, 3)) == StoredBatch(TOP, 1, 0, 2, 50)


def test_producer_lives_a_day_after_the_reload(states: ProducerStates) -> None:
    append(states, batch(0, timestamp=0))
    again = ProducerStates(TP, expiration_ms=1_000)
    again.load(states.snapshot(), 1, now_ms=5_000)
    assert again.expire(5_999) == 0
    assert again.expire(6_000) == 1


def test_truncation_is_a_reload_and_a_replay(states: ProducerStates) -> None:
    append(states, batch(0, 2))
    snapshot = states.snapshot()
    append(states, batch(2, 2))
    append(states, batch(4, 2))
    states.load(snapshot, 2, now_ms=0)
    states.replay(b"", batch(2, 2)._replace(base_offset=2), now_ms=0)
    assert states.end_offset == 4
    assert append(states, batch(4, 2)) is None, "the truncated batch is new again"


def test_each_snapshot_shows_the_newest_state(states: ProducerStates) -> None:
    for step in range(3):
        append(states, batch(step, transactional=True))
        marker(states)
        entry = decode_snapshot(states.snapshot())[0]
        assert (entry.last_sequence, entry.last_offset, entry.txn_first_offset) == (step, 2 * step, -1)
        assert entry.coordinator_epoch == 2


def test_clearing_forgets_everything(states: ProducerStates) -> None:
    append(states, batch(0, transactional=True))
    states.clear(100)
    assert (len(states), states.end_offset, states.first_unstable_offset) == (0, 100, None)


# --- transactions -----------------------------------------------------------------------------------------------------


def test_transaction_is_undecided_until_its_marker_and_unstable_until_that_is_replicated(
    states: ProducerStates,
) -> None:
    append(states, batch(0, 2, transactional=True))
    append(states, batch(2, 2, transactional=True))
    assert (states.first_undecided_offset, states.first_unstable_offset) == (0, 0)
    assert marker(states, is_abort=True) == CompletedTxn(7, 0, 4, is_aborted=True, last_stable_offset=5)
    assert (states.first_undecided_offset, states.first_unstable_offset) == (None, 0)
    states.on_high_watermark(4)
    assert states.first_unstable_offset == 0
    states.on_high_watermark(5)
    assert states.first_unstable_offset is None


def test_last_stable_offset_is_held_back_by_the_oldest_open_transaction(states: ProducerStates) -> None:
    append(states, batch(0, pid=1, transactional=True))
    append(states, batch(0, pid=2, transactional=True))
    ended = marker(states, pid=2)
    assert ended == CompletedTxn(2, 1, 2, is_aborted=False, last_stable_offset=0)
    assert states.first_unstable_offset == 0
    assert marker(states, pid=1) == CompletedTxn(1, 0, 3, is_aborted=False, last_stable_offset=4)
    states.on_high_watermark(3)
    assert states.first_unstable_offset == 0
    states.on_high_watermark(4)
    assert states.first_unstable_offset is None


def test_marker_without_a_transaction_here_completes_nothing(states: ProducerStates) -> None:
    append(states, batch(0))
    assert marker(states) is None
    assert states.end_offset == 2


def test_marker_keeps_the_batches_of_its_epoch_and_drops_those_of_older_ones(states: ProducerStates) -> None:
    append(states, batch(0, transactional=True))
    marker(states)
    assert append(states, batch(0, transactional=True)) == StoredBatch(0, 0, 0, 0, 50)
    append(states, batch(1, transactional=True))
    marker(states, epoch=1)  # KIP-890: the marker carries the next epoch
    assert refused(states, batch(2)).code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(states, batch(1, epoch=1)).code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(states, batch(0, epoch=1)) is None


def test_plain_write_within_a_transaction_is_refused(states: ProducerStates) -> None:
    append(states, batch(0, transactional=True))
    assert refused(states, batch(1)).code == ErrorCode.INVALID_TXN_STATE


def test_marker_of_a_fenced_coordinator_or_producer_is_refused(states: ProducerStates) -> None:
    append(states, batch(0, epoch=1, transactional=True))
    marker(states, epoch=1)
    header = batch(-1, epoch=1)
    states.check_marker(header, EndTxnMarker(False, 2, 0))
    states.check_marker(batch(-1, pid=1_000), EndTxnMarker(False, 0, 0))
    with pytest.raises(BrokerError) as caught:
        states.check_marker(header, EndTxnMarker(False, 1, 0))
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    with pytest.raises(BrokerError) as caught:
        states.check_marker(batch(-1, epoch=0), EndTxnMarker(False, 2, 0))
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_open_transaction_survives_a_snapshot(states: ProducerStates) -> None:
    append(states, batch(0, pid=5, transactional=True))
    append(states, batch(0, pid=3, transactional=True))
    again = ProducerStates(TP)
    again.load(states.snapshot(), 2, now_ms=0)
    assert again.first_undecided_offset == 0
    assert marker(again, pid=5) == CompletedTxn(5, 0, 2, is_aborted=False, last_stable_offset=1)
    assert marker(again, pid=3) == CompletedTxn(3, 1, 3, is_aborted=False, last_stable_offset=4)
